/** Which engine a run uses. @module */
import { commandLine } from "./commands.ts";
import type { WorkerDevice, WorkerEngine } from "./protocol.ts";
import { findTensorflow, searchTensorflow } from "./tensorflow/library/find.ts";

/** Names of engines; `auto` takes `tensorflow` where libtensorflow is found and starts, else `wasm`. */
export const ENGINES = ["auto", "tensorflow", "wasm"] as const satisfies readonly EngineName[];

/** Name of an engine, or `auto`. */
export type EngineName = "auto" | "tensorflow" | "wasm";

/** Options of the engine `tensorflow`. */
export interface TensorflowOptions {
  /** Folder or file of libtensorflow. Default: the environment variable STAGGER_TENSORFLOW, then a search. */
  readonly path?: string;
  /** GPU: take memory as it is needed. Default: true. */
  readonly memoryGrowth?: boolean;
  /** GPU: most bytes that this process may take of a device. */
  readonly memoryLimit?: number;
  /** Whether convolutions become matrix products where that is faster. Default: on CPU devices. */
  readonly lowerings?: boolean;
}

/**
 * Chooses the engine.
 *
 * @param notice told, in one line, what is done without
 * @throws {Error} if the engine asked for, or one that the devices need, is not there
 */
export function chooseEngine(
  name: EngineName,
  devices: readonly WorkerDevice[],
  options: TensorflowOptions,
  notice: (line: string) => void,
): WorkerEngine {
  const needsCuda = devices.find(({ kind }) => kind === "cuda");
  if (name === "wasm") {
    if (needsCuda) {
      throw new RangeError(
        `Cannot use device "${needsCuda.name}" with engine "wasm": expected CPU devices; name cpu:0`,
      );
    }
    return { name: "wasm" };
  }
  const found = findTensorflow({ path: options.path });
  if (!found) {
    const place = searchTensorflow({ path: options.path }).find(({ outcome }) => outcome === "unusable");
    const unusable = place && `libtensorflow in ${place.place}, which ${place.detail}`;
    if (name === "tensorflow" || needsCuda) {
      throw cannotStart(unusable ? `cannot use ${unusable}` : "found no libtensorflow");
    }
    notice(withWasm(unusable ? `Cannot use ${unusable}` : "Found no libtensorflow"));
    return { name: "wasm" };
  }
  if (needsCuda && found.build === "cpu") {
    throw new Error(
      `Cannot use device "${needsCuda.name}": ${found.cc} is built for the CPU alone; ` +
        `fetch the CUDA build with "${commandLine("setup", "--build cuda")}"`,
    );
  }
  const { memoryLimit } = options;
  const total = (needsCuda as { memory?: number } | undefined)?.memory;
  return {
    name: "tensorflow",
    libraries: { cc: found.cc, framework: found.framework, cudaLibraries: found.cudaLibraries },
    memoryGrowth: options.memoryGrowth ?? true,
    ...(memoryLimit !== undefined && total ? { memoryFraction: Math.min(1, memoryLimit / total) } : {}),
    ...(options.lowerings === undefined ? {} : { lowerings: options.lowerings }),
    // A path that was named is meant.
    ...(name === "auto" && !needsCuda && found.origin !== "path" ? { orElse: "wasm" } : {}),
  };
}

/** The error where `tensorflow` is wanted and does not start. */
export function cannotStart(why: string, cause?: unknown): Error {
  const remedy = Deno.env.get("STAGGER_TENSORFLOW")
    ? "name another folder in STAGGER_TENSORFLOW, or leave it out"
    : `fetch it with "${commandLine("setup")}", or set STAGGER_TENSORFLOW to its folder`;
  return new Error(
    `Cannot start engine "tensorflow": ${why}; ${remedy} ("${
      commandLine("doctor")
    }" shows what was looked for)`,
    { cause },
  );
}

/** The line that says that `wasm` takes its place. */
export function withWasm(why: string): string {
  return `${why}: training with the slower engine "wasm"; "${commandLine("setup")}" fetches what is missing`;
}
