/**
 * Examines the machine: what Stagger looked for, what it found, which engine and devices it would use.
 * @module
 */
import { cpuQuota, memoryLimit } from "../machine/cgroup.ts";
import { adviceFor } from "./advice.ts";
import { allowedCores, cpuFeatures, machineInfo } from "../machine/machine.ts";
import { cacheFolder, folderSize } from "../tensorflow/library/cache.ts";
import { cudaState } from "../tensorflow/library/cuda.ts";
import { type FindOptions, searchTensorflow } from "../tensorflow/library/find.ts";
import { probeTensorflow } from "../tensorflow/library/probe.ts";
import { findPython, pipVersion } from "../tensorflow/library/python.ts";
import { wasmFeatures } from "../wasm/features.ts";
import type { DoctorReport } from "./report.ts";

/** Examines this machine; takes a few seconds. */
export async function examine(options: FindOptions = {}): Promise<DoctorReport> {
  const search = searchTensorflow(options);
  const found = search.at(-1)?.found;
  const probe = found && await probeTensorflow(found);
  const tfjs = await tfjsVersion();
  const python = findPython();
  const memory = Deno.systemMemoryInfo();
  const examined: Omit<DoctorReport, "engine" | "devices" | "advice"> = {
    versions: {
      stagger: await staggerVersion(),
      deno: Deno.version.deno,
      tfjs: typeof tfjs === "string" ? tfjs : undefined,
      tensorflow: probe?.version,
    },
    machine: {
      ...machineInfo(),
      cpuFeatures: cpuFeatures(),
      allowedCores: allowedCores(),
      cpuQuota: cpuQuota(),
      memoryAvailable: memory.available,
      memoryLimit: memoryLimit(),
    },
    search,
    tensorflow: found && probe && { ...found, ...probe },
    wasm: wasmFeatures(),
    nvidia: cudaState(),
    python: python && { ...python, pip: pipVersion(python.command) },
    cache: cacheReport(),
  };
  const engine = chooseEngine(examined);
  return {
    ...examined,
    engine,
    devices: listDevices(examined, engine),
    advice: adviceFor(examined, typeof tfjs === "string" ? undefined : tfjs.message),
  };
}

/**
 * `tensorflow` where libtensorflow is found and loads; else `wasm`. A path named by the user that is wrong, and a
 * library that ends the process that loads it, lead to no engine: nothing can or may take its place.
 */
function chooseEngine(
  report: Pick<DoctorReport, "versions" | "search" | "tensorflow">,
): DoctorReport["engine"] {
  if (report.versions.tfjs === undefined) return undefined; // both engines are TensorFlow.js's
  if (report.tensorflow !== undefined) {
    const { fault, fatal, origin } = report.tensorflow;
    if (fault === undefined) return "tensorflow";
    return fatal || origin === "path" ? undefined : "wasm";
  }
  return report.search.some((step) => step.origin === "path") ? undefined : "wasm";
}

function listDevices(
  report: Pick<DoctorReport, "machine" | "tensorflow">,
  engine: DoctorReport["engine"],
): string[] {
  if (engine === undefined) return [];
  const gpus = engine === "tensorflow"
    ? report.tensorflow!.devices.filter((name) => name.startsWith("GPU:"))
    : [];
  return [
    ...gpus.map((name) => name.replace("GPU:", "cuda:")),
    ...report.machine.allowedCores.map((_, i) => `cpu:${i}`),
  ];
}

function cacheReport(): DoctorReport["cache"] {
  try {
    const folder = cacheFolder();
    return { folder, bytes: folderSize(folder) };
  } catch {
    return { bytes: 0 }; // the search tells why
  }
}

async function tfjsVersion(): Promise<string | Error> {
  try {
    return (await import("../../deps.ts")).tf.version.tfjs;
  } catch (error) {
    return error as Error;
  }
}

async function staggerVersion(): Promise<string | undefined> {
  try {
    return (await import("../../deno.json", { with: { type: "json" } })).default.version;
  } catch {
    return undefined; // imported from a place that does not serve it
  }
}
