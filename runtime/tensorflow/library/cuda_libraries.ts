/** NVIDIA's libraries that the CUDA build of libtensorflow asks for by name. @module */
import { join } from "node:path";

/**
 * Folder of each library within `nvidia/`, and its name, each after those it needs. TensorFlow, cuDNN and
 * cuSOLVER ask the loader for them by name: one that is loaded already is found wherever it lies.
 */
const LIBRARIES: readonly (readonly [folder: string, name: string])[] = [
  ["cuda_runtime", "libcudart.so"],
  ["nvjitlink", "libnvJitLink.so"],
  ["cuda_nvrtc", "libnvrtc.so"],
  ["cublas", "libcublasLt.so"],
  ["cublas", "libcublas.so"],
  ["cusparse", "libcusparse.so"],
  ["cusolver", "libcusolver.so"],
  ["cufft", "libcufft.so"],
  ["curand", "libcurand.so"],
  ["cuda_cupti", "libcupti.so"],
  ["nccl", "libnccl.so"],
  ["cudnn", "libcudnn.so"],
];

/**
 * Finds the libraries in folders laid out as NVIDIA's Python packages are:
 * `<folder>/<part>/lib/<name>.<number>`.
 *
 * @param folders `nvidia` folders, searched in order
 * @returns absolute paths, in the order in which to open them; those that are not there are left out
 */
export function findCudaLibraries(folders: readonly string[]): string[] {
  const found: string[] = [];
  for (const [part, name] of LIBRARIES) {
    for (const folder of folders) {
      const directory = join(folder, part, "lib");
      const file = filesIn(directory).find((file) => file === name || file.startsWith(`${name}.`));
      if (file === undefined) continue;
      found.push(join(directory, file));
      break;
    }
  }
  return found;
}

function filesIn(folder: string): string[] {
  try {
    return Array.from(Deno.readDirSync(folder), (entry) => entry.name).sort();
  } catch {
    return []; // most folders are not there on most machines
  }
}
