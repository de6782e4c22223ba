/**
 * Loads libtensorflow and keeps it loaded.
 *
 * Deno closes the libraries it opened when a worker ends, while the exit handlers that TensorFlow registered
 * stay behind: the process would end in a segmentation fault. Opening both first through libc's own dlopen with
 * RTLD_NODELETE pins them.
 * @module
 */
import { cApiSymbols } from "../binding/symbols/c_api.ts";
import { eagerSymbols } from "../binding/symbols/eager_c_api.ts";
import { tfBufferSymbols } from "../binding/symbols/tf_buffer.ts";
import { tfStatusSymbols } from "../binding/symbols/tf_status.ts";
import { tfTensorSymbols } from "../binding/symbols/tf_tensor.ts";
import { cstring } from "../binding/cstring.ts";
import { OLDEST_TENSORFLOW } from "./cache.ts";
import { openLibc } from "./libc.ts";
import { logLevelOf, LogSeverity, withoutLogLines } from "./log_lines.ts";

const RTLD_NOW = 0x2;
const RTLD_NOLOAD = 0x4;
const RTLD_GLOBAL = 0x100;
const RTLD_NODELETE = 0x1000;

const tensorflowSymbols = {
  ...tfStatusSymbols,
  ...tfTensorSymbols,
  ...tfBufferSymbols,
  ...cApiSymbols,
  ...eagerSymbols,
} as const;

/** libtensorflow's functions. */
export type Tensorflow = Deno.StaticForeignLibraryInterface<typeof tensorflowSymbols>;

/** Where the libraries lie. */
export interface LibraryPaths {
  /** `libtensorflow_cc.so.2`. */
  readonly cc: string;
  /** `libtensorflow_framework.so.2`. */
  readonly framework: string;
  /** Libraries that the CUDA build needs, opened before it, in order. */
  readonly cudaLibraries?: readonly string[];
}

/**
 * Loads libtensorflow.
 *
 * @throws {Error} if a library cannot be opened, with what the system says about it
 */
export function openTensorflow(paths: LibraryPaths): Tensorflow {
  prepareEnvironment();
  const c = openLibc();
  if (c.dlopen(cstring(paths.cc), RTLD_NOW | RTLD_NOLOAD) === 0n) {
    for (const path of paths.cudaLibraries ?? []) pin(path, RTLD_GLOBAL);
    const quiet = Number(Deno.env.get("TF_CPP_MIN_LOG_LEVEL")) >= 2; // else the user wants to see the lines
    if (quiet) withoutLogLines(c, paths.framework, () => pin(paths.framework, 0));
    else pin(paths.framework, 0);
    // While the other one is loaded, it complains of what is no fault; what really fails, dlopen tells.
    const setLogLevel = quiet ? logLevelOf(paths.framework) : undefined;
    setLogLevel?.(LogSeverity.Fatal);
    pin(paths.cc, 0);
    setLogLevel?.(LogSeverity.Error);
    leaveAtOnce();
  }
  checkVersion(paths.cc);
  try {
    return Deno.dlopen(paths.cc, tensorflowSymbols).symbols;
  } catch (error) {
    const { message } = error as Error;
    const name = /symbol:? (\w+)/.exec(message)?.[1];
    throw new Error(`Cannot use ${paths.cc}: ${name ? `it lacks the function ${name}` : message}`);
  }
}

/** Before all else is looked up: what a release lacks is told as its age. */
function checkVersion(path: string): void {
  let library: Deno.DynamicLibrary<{ TF_Version: { parameters: []; result: "pointer" } }>;
  try {
    library = Deno.dlopen(path, { TF_Version: tensorflowSymbols.TF_Version });
  } catch {
    throw new Error(`Cannot use ${path}: it is not libtensorflow, for it lacks TF_Version`);
  }
  const version = Deno.UnsafePointerView.getCString(library.symbols.TF_Version()!);
  if (!isRecent(version)) {
    throw new Error(
      `Cannot use ${path}: it is TensorFlow ${version}, expected ${OLDEST_TENSORFLOW} or later`,
    );
  }
}

function isRecent(version: string): boolean {
  const [[major, minor], [oldMajor, oldMinor]] = [version, OLDEST_TENSORFLOW].map((text) =>
    text.split(".").map((part) => parseInt(part))
  ) as [[number, number], [number, number]];
  return major > oldMajor || major === oldMajor && minor >= oldMinor;
}

/** Environment variables that TensorFlow reads while it loads. Those that the user has set stay. */
function prepareEnvironment(): void {
  const defaults = {
    // oneDNN's convolutions: 18 images/s where Eigen's give 7 (ResNet50, 64x64).
    TF_ENABLE_ONEDNN_OPTS: "1",
    // Errors only.
    TF_CPP_MIN_LOG_LEVEL: "2",
  };
  for (const [name, value] of Object.entries(defaults)) {
    if (Deno.env.get(name) === undefined) Deno.env.set(name, value);
  }
}

function pin(path: string, flags: number): void {
  const c = openLibc();
  const handle = c.dlopen(cstring(path), RTLD_NOW | RTLD_NODELETE | flags);
  if (handle === 0n) {
    const message = c.dlerror();
    throw new Error(
      `Cannot open ${path}: ${message ? Deno.UnsafePointerView.getCString(message) : "unknown error"}`,
    );
  }
}

/**
 * Lets the process end without the exit handlers registered so far, with its exit code: those of TensorFlow would
 * take apart what other threads still compute with, and these would abort the process. Handlers run last in,
 * first out, and `on_exit` hands the exit code to this one: `_exit` takes it.
 */
function leaveAtOnce(): void {
  const c = openLibc();
  c.on_exit(c.dlsym(0n, cstring("_exit")), 0n);
}
