/**
 * Brings libtensorflow into Stagger's cache: downloads TensorFlow's wheel with pip and keeps its two shared
 * libraries. Where there is an NVIDIA GPU it takes the CUDA build, and the NVIDIA libraries that its wheel
 * names.
 *
 * The work is done in a staging folder that becomes the copy by one rename at the end, under a lock that the
 * system lets go when its holder ends: broken off at any point, it leaves nothing that could be taken for a
 * copy, and the next setup clears away what is left.
 *
 * That the CUDA build downloads, unpacks and loads is tested without a GPU; that it computes on one is not.
 * @module
 */
import { join, relative, resolve } from "node:path";
import {
  type Build,
  cacheFolder,
  copyFault,
  copyFolder,
  exists,
  folderSize,
  MANIFEST,
  type Manifest,
  TENSORFLOW_VERSION,
} from "../library/cache.ts";
import { cudaState, hasNvidiaDriver } from "../library/cuda.ts";
import { findTensorflow, namedPath } from "../library/find.ts";
import { findPython } from "../library/python.ts";
import { lockCache } from "./lock.ts";
import {
  downloadWheel,
  extractWheel,
  MORE_SPACE,
  removeFolder,
  SetupError,
  type WheelTools,
} from "./wheel.ts";

export { SetupError } from "./wheel.ts";

/** How far setup is. */
export interface SetupProgress {
  /** `wait`: for another setup. */
  readonly step: "wait" | "download" | "unpack";
  /** What is downloaded or unpacked, such as "tensorflow-cpu==2.21.0"; whom it waits for. */
  readonly item: string;
  /** Number of the item, from 1, and of how many. */
  readonly index: number;
  readonly count: number;
  /** Bytes done of this item. */
  readonly done: number;
  /** Bytes of this item, once they are known. */
  readonly total?: number;
}

/** Options of {@linkcode setup}. */
export interface SetupOptions {
  /** Default: `cuda` on x86_64 with an NVIDIA GPU, else `cpu`. */
  readonly build?: Build;
  /** Fetch it even though a whole copy is there. */
  readonly force?: boolean;
  /** Stops it: what is half done is removed. */
  readonly signal?: AbortSignal;
  onProgress?(progress: SetupProgress): void;
}

/** What setup did. */
export interface SetupResult {
  /**
   * `present`: a whole copy was there. `named`: the user names a libtensorflow through
   * `STAGGER_TENSORFLOW`.
   */
  readonly status: "installed" | "present" | "named";
  readonly build: Build | "unknown";
  /** The copy's folder. */
  readonly folder: string;
  /** Bytes on disk; 0 unless it was installed now. */
  readonly bytes: number;
}

/**
 * Sees to it that libtensorflow is in the cache. Returns within milliseconds if it is.
 *
 * @throws {SetupError} if that cannot be: the message is one line with the remedy
 * @throws {TensorflowPathError} if `STAGGER_TENSORFLOW` is set and wrong
 * @throws the signal's reason, if it was given
 */
export async function setup(options: SetupOptions = {}): Promise<SetupResult> {
  if (namedPath() !== undefined && !options.build && !options.force) {
    const { directory, build } = findTensorflow()!;
    return { status: "named", build, folder: directory, bytes: 0 };
  }
  const cache = resolve(cacheFolder());
  const build = options.build ?? defaultBuild(cache);
  const folder = copyFolder(cache, build);
  const present = { status: "present", build, folder, bytes: 0 } as const;
  if (!options.force && copyFault(folder) === undefined) return present;
  checkPlatform(build);
  const python = findPython();
  if (python === undefined) {
    throw new SetupError(
      "Cannot fetch libtensorflow: there is no Python 3: install it with pip, " +
        'e.g. "apt install python3-pip", or set STAGGER_TENSORFLOW to a folder that has libtensorflow',
    );
  }
  makeFolder(cache);
  using _lock = await lockCache(cache, options.signal, (holder) => {
    options.onProgress?.({ step: "wait", item: holder, index: 1, count: 1, done: 0 });
  });
  removeLeftovers(cache);
  if (!options.force && copyFault(folder) === undefined) return present; // the one it waited for has done it
  await checkSpace(cache, build);
  await install(cache, build, python.command, options);
  return { status: "installed", build, folder, bytes: folderSize(folder) };
}

/** Makes a copy in a staging folder and puts it into its place. */
async function install(cache: string, build: Build, python: string, options: SetupOptions): Promise<void> {
  const folder = copyFolder(cache, build);
  const staging = Deno.makeTempDirSync({ dir: cache, prefix: STAGING });
  const copy = join(staging, "copy");
  const workspace = join(staging, "work");
  try {
    for (const path of [copy, workspace]) Deno.mkdirSync(path);
    await fill(copy, build, { python, workspace, signal: options.signal }, options.onProgress);
    writeManifest(copy, build);
    const fault = copyFault(copy);
    if (fault !== undefined) {
      throw new SetupError(`Cannot use what was fetched: it ${fault}: run setup again`);
    }
    if (exists(folder)) Deno.renameSync(folder, join(staging, "old"));
    Deno.renameSync(copy, folder);
  } catch (error) {
    if (error instanceof Error && /No space left on device/.test(error.message)) {
      throw new SetupError(`Cannot fetch libtensorflow: the disk is full: ${MORE_SPACE}`);
    }
    throw error;
  } finally {
    removeFolder(staging);
  }
}

/** How the names of folders begin that setup works in. */
const STAGING = ".setup-";

/** Clears away what setups that were broken off have left. Only under the lock, when none is at work. */
function removeLeftovers(cache: string): void {
  for (const entry of Deno.readDirSync(cache)) {
    if (entry.isDirectory && entry.name.startsWith(STAGING)) removeFolder(join(cache, entry.name));
  }
}

function defaultBuild(cache: string): Build {
  if (Deno.build.arch !== "x86_64" || !hasNvidiaDriver()) return "cpu";
  // Asking the driver takes a while, and a container may have its library without any device.
  if (copyFault(copyFolder(cache, "cuda")) === undefined) return "cuda";
  return cudaState().devices.length > 0 ? "cuda" : "cpu";
}

function checkPlatform(build: Build): void {
  const { os, arch } = Deno.build;
  if (os !== "linux" || !["x86_64", "aarch64"].includes(arch)) {
    throw new SetupError(
      `Cannot fetch libtensorflow for ${os} ${arch}: it is published for Linux on x86_64 and aarch64`,
    );
  }
  if (build === "cuda" && arch !== "x86_64") {
    throw new SetupError(
      `Cannot fetch the CUDA build for ${arch}: it is published for x86_64: use --build cpu`,
    );
  }
}

function makeFolder(cache: string): void {
  try {
    Deno.mkdirSync(cache, { recursive: true });
    removeFolder(Deno.makeTempDirSync({ dir: cache, prefix: STAGING }));
  } catch (error) {
    throw new SetupError(
      `Cannot write to the cache ${cache}: ${(error as Error).message}: ` +
        `set STAGGER_CACHE to a folder that can be written`,
    );
  }
}

/**
 * Bytes that setup takes at its peak: the copy and a wheel, or before that a wheel twice (pip copies it from
 * its temporary folder). What pip keeps in its own cache comes on top.
 */
const SPACE: Readonly<Record<Build, number>> = { cpu: 1.2e9, cuda: 6e9 };

async function checkSpace(cache: string, build: Build): Promise<void> {
  // Loaded here, since that takes longer than all else when nothing is to do.
  const { statfsSync } = await import("node:fs");
  const { bavail, bsize } = statfsSync(cache);
  const free = bavail * bsize;
  if (free >= SPACE[build]) return;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new SetupError(
    `Cannot fetch libtensorflow (${build}) to ${cache}: ${gigabytes(free)} are free, ${
      gigabytes(SPACE[build])
    } ` +
      `are needed: ${MORE_SPACE}`,
  );
}

/** Files to keep, as regular expressions for paths within a wheel. */
const LIBRARIES = "tensorflow/libtensorflow_(cc|framework)\\.so\\.2";
const LICENCES = "(?i:(.*/)?(licen[cs]e|notice|third_party_notices)(\\.txt|\\.md)?)";
const METADATA = "[^/]+\\.dist-info/METADATA";
/** NVIDIA's libraries, and what TensorFlow compiles kernels with that it has not in store for a GPU. */
const NVIDIA = [
  "nvidia/[^/]+/lib/[^/]+\\.so(\\.[0-9.]+)?",
  "nvidia/cuda_nvcc/(bin/ptxas|nvvm/libdevice/[^/]+)",
];

/** Downloads and unpacks everything that belongs to a copy. */
async function fill(
  copy: string,
  build: Build,
  tools: WheelTools,
  onProgress?: (progress: SetupProgress) => void,
): Promise<void> {
  const bring = async (item: string, patterns: string[], index: number, count: number) => {
    const report = (step: SetupProgress["step"]) => (done: number, total?: number) =>
      onProgress?.({ step, item, index, count, done, total });
    report("download")(0);
    const wheel = await downloadWheel(item, tools, report("download"));
    await extractWheel(wheel, patterns, copy, tools, report("unpack"));
    Deno.removeSync(wheel);
  };
  // On aarch64 the package without a suffix is the CPU build.
  const name = build === "cpu" && Deno.build.arch === "x86_64" ? "tensorflow-cpu" : "tensorflow";
  const patterns = [LIBRARIES, LICENCES, METADATA];
  // How many NVIDIA wheels follow is known when TensorFlow's is there.
  await bring(`${name}==${TENSORFLOW_VERSION}`, patterns, 1, 1);
  const requirements = build === "cuda" ? cudaRequirements(readMetadata(copy)) : [];
  for (const [i, requirement] of requirements.entries()) {
    await bring(requirement, [...NVIDIA, LICENCES], i + 2, requirements.length + 1);
  }
}

function readMetadata(copy: string): string {
  const folder = Array.from(Deno.readDirSync(copy)).find((entry) => entry.name.endsWith(".dist-info"));
  return folder === undefined ? "" : Deno.readTextFileSync(join(copy, folder.name, "METADATA"));
}

/**
 * The NVIDIA packages that TensorFlow's wheel asks for with its CUDA build, with their versions.
 *
 * @param metadata the wheel's METADATA
 * @returns requirements as pip takes them, such as "nvidia-nccl-cu12<3.0,>=2.27.7"
 */
export function cudaRequirements(metadata: string): string[] {
  return metadata.split("\n").flatMap((line) => {
    const [, name, versions, marker] =
      line.match(/^Requires-Dist:\s*(nvidia-[\w.-]*\w)\s*\(?([^;()]*?)\)?\s*;(.*)$/) ?? [];
    return /extra\s*==\s*["']and-cuda["']/.test(marker ?? "") ? [`${name}${versions}`] : [];
  });
}

function writeManifest(copy: string, build: Build): void {
  const files: Record<string, number> = {};
  const walk = (folder: string) => {
    for (const entry of Deno.readDirSync(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory) walk(path);
      else files[relative(copy, path)] = Deno.statSync(path).size;
    }
  };
  walk(copy);
  const manifest: Manifest = { version: TENSORFLOW_VERSION, build, arch: Deno.build.arch, files };
  using file = Deno.createSync(join(copy, MANIFEST));
  file.writeSync(new TextEncoder().encode(JSON.stringify(manifest, null, 2) + "\n"));
  file.syncSync();
}
