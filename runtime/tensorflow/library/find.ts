/**
 * Finds libtensorflow: a path that the user names, Stagger's cache, the system's libraries, an installed
 * Python package, in this order.
 * @module
 */
import { basename, dirname, join, resolve } from "node:path";
import { type Build, cacheFolder, CC, copyFault, copyFolder, FRAMEWORK, readManifest } from "./cache.ts";
import { hasNvidiaDriver } from "./cuda.ts";
import { findCudaLibraries } from "./cuda_libraries.ts";
import { libraryFault, searchPathOf } from "./elf.ts";
import { locatePackages, PYTHONS } from "./python.ts";
import { systemFolders } from "./system_folders.ts";

/** Where libtensorflow came from. */
export type TensorflowOrigin = "path" | "cache" | "system" | "python";

/** A libtensorflow that can be loaded. */
export interface FoundTensorflow {
  /** Folder of both libraries, absolute. */
  readonly directory: string;
  /** Path of `libtensorflow_cc.so.2`. */
  readonly cc: string;
  /** Path of `libtensorflow_framework.so.2`. */
  readonly framework: string;
  readonly origin: TensorflowOrigin;
  readonly build: Build | "unknown";
  /** Absolute paths of NVIDIA's libraries, to be opened before it, in this order. Empty for the CPU build. */
  readonly cudaLibraries: readonly string[];
}

/** One place where libtensorflow was looked for. */
export interface SearchStep {
  readonly origin: TensorflowOrigin;
  /** The place: a folder, several separated by colons, or a command. */
  readonly place: string;
  /** `unusable`: something is there that cannot be used. */
  readonly outcome: "found" | "absent" | "unusable";
  /** What is there, or why not. */
  readonly detail: string;
  readonly found?: FoundTensorflow;
}

/** Options of the search. */
export interface FindOptions {
  /**
   * A folder that holds both libraries, or the path of one of them; no other place is looked at.
   * Default: the environment variable `STAGGER_TENSORFLOW`.
   */
  readonly path?: string;
}

/** Thrown when the path that the user named does not lead to libtensorflow. */
export class TensorflowPathError extends Error {
  override readonly name = "TensorflowPathError";
}

/**
 * Finds libtensorflow.
 *
 * Needs `--allow-read`, `--allow-env`; with `--allow-ffi` it sees NVIDIA's driver, with `--allow-run` it
 * asks Python.
 *
 * @returns undefined if there is none
 * @throws {TensorflowPathError} if a path is named and is wrong: nothing else is taken in its place
 */
export function findTensorflow(options: FindOptions = {}): FoundTensorflow | undefined {
  for (const step of search(options)) {
    if (step.found !== undefined) return step.found;
    if (step.origin === "path") {
      throw new TensorflowPathError(
        `Cannot use ${namedPath(options)!.label}: ${step.detail}: name a folder that holds ${CC} and ` +
          `${FRAMEWORK} for ${Deno.build.arch}, or leave it out`,
      );
    }
  }
}

/**
 * Looks as {@linkcode findTensorflow} does and tells every place on the way, up to the one where it was
 * found. Throws nothing: a named path that is wrong is an `unusable` last step.
 */
export function searchTensorflow(options: FindOptions = {}): SearchStep[] {
  const steps: SearchStep[] = [];
  for (const step of search(options)) {
    steps.push(step);
    if (step.found !== undefined) break;
  }
  return steps;
}

/** The path that the user has named, and the words for it. */
export function namedPath(options: FindOptions = {}): { path: string; label: string } | undefined {
  if (options.path !== undefined) return { path: options.path, label: `tensorflow.path "${options.path}"` };
  const path = Deno.env.get("STAGGER_TENSORFLOW");
  if (path) return { path, label: `STAGGER_TENSORFLOW="${path}"` };
}

function* search(options: FindOptions): Generator<SearchStep> {
  const named = namedPath(options);
  if (named !== undefined) {
    yield searchPath(named.path);
    return;
  }
  yield* searchCache();
  yield* searchSystem();
  yield* searchPython();
}

function searchPath(path: string): SearchStep {
  const absolute = resolve(path);
  const directory = [CC, FRAMEWORK].includes(basename(absolute)) ? dirname(absolute) : absolute;
  // Also takes the folder of a copy in the cache, or of Python's packages.
  const folders = [directory, join(directory, "tensorflow")];
  const folder = folders.find((folder) => pairFault(folder) === undefined);
  if (folder !== undefined) return foundAt("path", absolute, folder, nvidiaBeside(folder));
  return { origin: "path", place: absolute, outcome: "unusable", detail: pairFault(directory)! };
}

function* searchCache(): Generator<SearchStep> {
  let cache: string;
  try {
    cache = resolve(cacheFolder());
  } catch (error) {
    yield { origin: "cache", place: "(nowhere)", outcome: "absent", detail: (error as Error).message };
    return;
  }
  const builds: Build[] = hasNvidiaDriver() ? ["cuda", "cpu"] : ["cpu", "cuda"];
  for (const build of builds) {
    const place = copyFolder(cache, build);
    const fault = copyFault(place);
    if (fault === undefined) {
      const folder = join(place, "tensorflow");
      yield foundAt("cache", place, folder, nvidiaBeside(folder));
      continue;
    }
    yield { origin: "cache", place, outcome: fault === "is missing" ? "absent" : "unusable", detail: fault };
  }
}

function* searchSystem(): Generator<SearchStep> {
  const absent: string[] = [];
  for (const folder of systemFolders().map((folder) => resolve(folder))) {
    if (libraryFault(join(folder, CC)) === "is missing") {
      absent.push(folder);
      continue;
    }
    const fault = pairFault(folder);
    if (fault === undefined) yield foundAt("system", folder, folder, nvidiaBeside(folder));
    else yield { origin: "system", place: folder, outcome: "unusable", detail: fault };
  }
  yield { origin: "system", place: absent.join(":"), outcome: "absent", detail: `${CC} is missing` };
}

function* searchPython(): Generator<SearchStep> {
  for (const command of PYTHONS) {
    const packages = locatePackages(command);
    const step = { origin: "python", place: command, outcome: "absent" } as const;
    if (packages === undefined) yield { ...step, detail: "there is no such command, or it may not be run" };
    else if (typeof packages === "string") yield { ...step, detail: packages };
    else if (packages.tensorflow.length === 0) yield { ...step, detail: "has no package tensorflow" };
    else {
      for (const folder of packages.tensorflow) {
        const fault = pairFault(folder);
        if (fault === undefined) {
          yield foundAt("python", folder, folder, [...nvidiaBeside(folder), ...packages.nvidia]);
        } else yield { origin: "python", place: folder, outcome: "unusable", detail: fault };
      }
    }
  }
}

/** Why the two libraries in `folder` cannot be used. */
function pairFault(folder: string): string | undefined {
  for (const name of [CC, FRAMEWORK]) {
    const fault = libraryFault(join(folder, name));
    if (fault !== undefined) return `${join(folder, name)} ${fault}`;
  }
}

function foundAt(
  origin: TensorflowOrigin,
  place: string,
  directory: string,
  nvidiaFolders: readonly string[],
): SearchStep {
  const build = buildOf(directory);
  const found: FoundTensorflow = {
    directory,
    cc: join(directory, CC),
    framework: join(directory, FRAMEWORK),
    origin,
    build,
    cudaLibraries: build === "cpu" ? [] : findCudaLibraries(nvidiaFolders),
  };
  const detail = build === "unknown" ? "build unknown" : `${build} build`;
  return { origin, place, outcome: "found", detail, found };
}

/** Where NVIDIA's packages lie beside TensorFlow's, in Python's folder of packages and in the cache. */
function nvidiaBeside(directory: string): string[] {
  return [join(directory, "..", "nvidia")];
}

/**
 * What the libraries in a folder compute on: the cache's manifest says so, Python's package says so in a
 * file, and published CUDA builds look for their libraries in folders named for NVIDIA.
 */
function buildOf(directory: string): Build | "unknown" {
  const manifest = readManifest(join(directory, ".."));
  if (typeof manifest !== "string") return manifest.build;
  try {
    const info = Deno.readTextFileSync(join(directory, "python", "platform", "build_info.py"));
    const [, cuda] = info.match(/'is_cuda_build',\s*(True|False)/) ?? [];
    if (cuda !== undefined) return cuda === "True" ? "cuda" : "cpu";
  } catch { /* not Python's package */ }
  return /nvidia|cuda/.test(searchPathOf(join(directory, FRAMEWORK))) ? "cuda" : "unknown";
}
