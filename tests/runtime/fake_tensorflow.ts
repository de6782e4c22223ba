/** Files that look like libtensorflow to whoever reads their headers. Not a test. @module */
import { dirname, join } from "node:path";

/** How a library is made. */
export interface FakeLibraryOptions {
  readonly arch?: string;
  /** Bytes of the file. */
  readonly size?: number;
  /** Where it looks for others (RUNPATH). */
  readonly searchPath?: string;
}

/**
 * A shared library of headers alone: segments, the loader's table with a search path, sections at its end.
 */
export function fakeLibrary(options: FakeLibraryOptions = {}): Uint8Array<ArrayBuffer> {
  const { arch = Deno.build.arch, size = 4096, searchPath = "" } = options;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  const put = (at: number, value: number) => view.setBigUint64(at, BigInt(value), true);
  view.setUint32(0, 0x7f454c46);
  bytes.set([2, 1, 1], 4); // 64 bits, little endian
  view.setUint16(16, 3, true); // shared library
  view.setUint16(18, arch === "aarch64" ? 183 : 62, true);
  const segments = 64, dynamic = 256, strings = 512, address = 0x10000;
  put(32, segments);
  put(40, size - 64); // one section header, the last bytes of the file
  view.setUint16(54, 56, true);
  view.setUint16(56, 2, true);
  view.setUint16(58, 64, true);
  view.setUint16(60, 1, true);
  const segment = (at: number, type: number, offset: number, length: number) => {
    view.setUint32(at, type, true);
    put(at + 8, offset);
    put(at + 16, address + offset);
    put(at + 32, length);
  };
  segment(segments, 1, 0, size - 64);
  segment(segments + 56, 2, dynamic, 48);
  const entries = [5, address + strings, searchPath === "" ? 0 : 29, 1, 0, 0];
  entries.forEach((value, i) => put(dynamic + 8 * i, value));
  bytes.set(new TextEncoder().encode(`\0${searchPath}\0`), strings);
  return bytes;
}

/** Writes both libraries of a TensorFlow into `folder`. */
export function writePair(folder: string, options: FakeLibraryOptions = {}): void {
  Deno.mkdirSync(folder, { recursive: true });
  for (const name of ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]) {
    Deno.writeFileSync(join(folder, name), fakeLibrary(options));
  }
}

/** Writes a text file and the folders above it. */
export function writeText(path: string, text: string): void {
  Deno.mkdirSync(dirname(path), { recursive: true });
  Deno.writeTextFileSync(path, text);
}

/** Writes a copy as setup leaves it in the cache. */
export function writeCopy(cache: string, build: "cpu" | "cuda"): string {
  const folder = join(cache, `libtensorflow-2.21.0-${build}`);
  writePair(join(folder, "tensorflow"));
  const files: Record<string, number> = {
    "tensorflow/libtensorflow_cc.so.2": 4096,
    "tensorflow/libtensorflow_framework.so.2": 4096,
  };
  if (build === "cuda") {
    for (
      const name of ["cudnn/lib/libcudnn.so.9", "cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12"]
    ) {
      writeText(join(folder, "nvidia", name), "x");
      files[`nvidia/${name}`] = 1;
    }
  }
  writeText(
    join(folder, "stagger.json"),
    JSON.stringify({ version: "2.21.0", build, arch: Deno.build.arch, files }),
  );
  return folder;
}

/** Runs `body` in a new folder, with environment variables set (or unset: undefined); undoes both. */
export async function inFolder(
  environment: (folder: string) => Record<string, string | undefined>,
  body: (folder: string) => void | Promise<void>,
): Promise<void> {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "stagger-test-" }));
  const before = new Map<string, string | undefined>();
  try {
    for (const [name, value] of Object.entries(environment(folder))) {
      before.set(name, Deno.env.get(name));
      setVariable(name, value);
    }
    await body(folder);
  } finally {
    for (const [name, value] of before) setVariable(name, value);
    Deno.removeSync(folder, { recursive: true });
  }
}

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) Deno.env.delete(name);
  else Deno.env.set(name, value);
}
