/**
 * Stagger's cache: where it is, how a copy of libtensorflow lies in it, and whether a copy is whole.
 *
 * ```text
 * <cache>/libtensorflow-2.21.0-cuda/
 *   stagger.json                    what belongs here, and how large each file is
 *   tensorflow/libtensorflow_*.so.2 and licences
 *   nvidia/<part>/lib/*.so.*        the CUDA build's libraries, where its own search path looks: ../nvidia/
 * ```
 * @module
 */
import { join } from "node:path";
import { libraryFault } from "./elf.ts";

/** The TensorFlow that Stagger fetches and is tested with. */
export const TENSORFLOW_VERSION = "2.21.0";

/** The oldest that works: an error of an op ends the process in those before. */
export const OLDEST_TENSORFLOW = "2.20";

/** Libraries of which libtensorflow consists. */
export const CC = "libtensorflow_cc.so.2";
/** The one that the other needs. */
export const FRAMEWORK = "libtensorflow_framework.so.2";

/** The list of what belongs to a copy. */
export const MANIFEST = "stagger.json";

/** What a copy computes on: `cuda` does both. */
export type Build = "cpu" | "cuda";

/** What is written beside a copy when it is whole. */
export interface Manifest {
  readonly version: string;
  readonly build: Build;
  readonly arch: string;
  /** Bytes of each file, by its path within the copy. */
  readonly files: Readonly<Record<string, number>>;
}

/**
 * Stagger's cache folder: `STAGGER_CACHE`, else `$XDG_CACHE_HOME/stagger`, else `~/.cache/stagger`.
 *
 * @throws {Error} if none of `STAGGER_CACHE`, `XDG_CACHE_HOME` and `HOME` is set
 */
export function cacheFolder(): string {
  const own = Deno.env.get("STAGGER_CACHE");
  if (own) return own;
  const shared = Deno.env.get("XDG_CACHE_HOME");
  if (shared) return join(shared, "stagger");
  const home = Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE");
  if (home) return join(home, ".cache", "stagger");
  throw new Error("Cannot place the cache: HOME is not set: set STAGGER_CACHE to a folder");
}

/** Folder of one build's copy within the cache. */
export function copyFolder(cache: string, build: Build): string {
  return join(cache, `libtensorflow-${TENSORFLOW_VERSION}-${build}`);
}

/**
 * Says why the copy in `folder` is not whole, as the end of a sentence that begins with the folder's name.
 * Compares sizes and looks at the libraries' headers, within milliseconds.
 */
export function copyFault(folder: string): string | undefined {
  const manifest = readManifest(folder);
  if (typeof manifest === "string") return manifest;
  for (const [name, size] of Object.entries(manifest.files)) {
    try {
      const actual = Deno.statSync(join(folder, name)).size;
      if (actual !== size) return `is not whole: ${name} has ${actual} of ${size} bytes`;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      return `is not whole: ${name} is missing`;
    }
  }
  for (const name of [CC, FRAMEWORK]) {
    const fault = libraryFault(join(folder, "tensorflow", name));
    if (fault !== undefined) return `is not whole: ${name} ${fault}`;
  }
}

/** The manifest of the copy in `folder`, or why there is none. */
export function readManifest(folder: string): Manifest | string {
  let text: string;
  try {
    text = Deno.readTextFileSync(join(folder, MANIFEST));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) return `cannot be read: ${(error as Error).message}`;
    return exists(folder) ? `is not whole: ${MANIFEST} is missing` : "is missing";
  }
  try {
    const manifest = JSON.parse(text);
    if (typeof manifest.files === "object" && manifest.files !== null) return manifest;
  } catch { /* said below */ }
  return `is not whole: ${MANIFEST} cannot be understood`;
}

/** Bytes of everything below `folder`; 0 if it is not there. */
export function folderSize(folder: string): number {
  let total = 0;
  try {
    for (const entry of Deno.readDirSync(folder)) {
      const path = join(folder, entry.name);
      total += entry.isDirectory ? folderSize(path) : Deno.lstatSync(path).size;
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error; // gone meanwhile: counts nothing
  }
  return total;
}

/** Whether there is a file or folder of this name. */
export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
