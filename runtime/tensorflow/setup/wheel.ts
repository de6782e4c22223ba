/** Fetches Python wheels with pip and takes out of them what Stagger needs. @module */
import { join } from "node:path";
import { runPython } from "../library/python_child.ts";

/** Something went wrong in a way that a person can act on: the message says how. */
export class SetupError extends Error {
  override readonly name = "SetupError";
}

/** What to do about a full disk. */
export const MORE_SPACE = "free some space, or set STAGGER_CACHE to a folder on another disk";

/** Bytes done so far, and of how many if that is known. */
export type OnBytes = (done: number, total?: number) => void;

/** Where and with what to work. */
export interface WheelTools {
  /** Python's command. */
  readonly python: string;
  /** An empty folder, for everything that is needed on the way. */
  readonly workspace: string;
  readonly signal?: AbortSignal;
}

/** Runs pip as `python -m pip` does. */
const PIP = `
import runpy
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`;

/**
 * The ABI of the wheel that is asked for. libtensorflow is the same in the wheels of every Python, so that
 * whatever Python runs pip, one and the same is fetched.
 */
const ABI = ["--implementation", "cp", "--python-version", "3.11", "--abi", "cp311"];

/** Tags of Linux wheels that libtensorflow and NVIDIA's libraries are published under, newest first. */
const PLATFORMS = ["manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"];

/** Milliseconds between two looks at how far a download is. */
const POLL_MS = 200;

/**
 * Downloads one wheel, through whatever index, proxy and cache the user's pip is set to.
 *
 * @param requirement e.g. "tensorflow-cpu==2.21.0"
 * @returns the wheel's path
 * @throws {SetupError} if pip is missing or fails, with its reason
 */
export async function downloadWheel(
  requirement: string,
  tools: WheelTools,
  onBytes: OnBytes,
): Promise<string> {
  const folder = join(tools.workspace, "wheel");
  const temporary = join(tools.workspace, "tmp");
  for (const path of [folder, temporary]) Deno.mkdirSync(path, { recursive: true });
  let total: number | undefined;
  const poll = setInterval(() => onBytes(largestFile(temporary), total), POLL_MS);
  try {
    const { success, stderr } = await runPython({
      command: tools.python,
      script: PIP,
      args: [
        ...["download", "--no-deps", "--only-binary=:all:", ...ABI],
        ...PLATFORMS.flatMap((platform) => ["--platform", `${platform}_${Deno.build.arch}`]),
        ...[
          "--no-input",
          "--disable-pip-version-check",
          "--progress-bar",
          "off",
          "--dest",
          folder,
          requirement,
        ],
      ],
      cwd: tools.workspace, // Python looks for modules in its working folder
      // pip unpacks in the temporary folder: the one place where the growing file can be seen. Two retries,
      // since pip's own five keep a machine without network waiting for a long time.
      env: { TMPDIR: temporary, PIP_RETRIES: Deno.env.get("PIP_RETRIES") ?? "2" },
      signal: tools.signal,
      onLine(line) {
        total ??= announcedBytes(line);
      },
    });
    if (!success) throw new SetupError(pipFault(stderr, requirement, tools.python));
  } finally {
    clearInterval(poll);
    removeFolder(temporary);
  }
  const [wheel] = Array.from(Deno.readDirSync(folder), (entry) => entry.name).filter((n) =>
    n.endsWith(".whl")
  );
  if (wheel === undefined) throw new SetupError(`Cannot fetch ${requirement}: pip left no wheel: update pip`);
  return join(folder, wheel);
}

/** Bytes of the file that pip says it downloads, e.g. "Downloading x.whl (273.8 MB)". */
export function announcedBytes(line: string): number | undefined {
  const [, size, unit] = line.match(/^\s*(?:Downloading|Using cached) .*\(([\d.]+) (bytes|kB|MB|GB)\)/) ?? [];
  if (size === undefined || unit === undefined) return undefined;
  return Number(size) * { bytes: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[unit as "bytes"];
}

/** One line that says why pip failed and what to do. */
function pipFault(stderr: string, requirement: string, python: string): string {
  const lines = stderr.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const find = (pattern: RegExp) => lines.findLast((line) => pattern.test(line));
  if (find(/No module named '?pip\b/) !== undefined) {
    return `Cannot fetch ${requirement}: ${python} has no pip: install it, ` +
      `e.g. with "apt install python3-pip" or "${python} -m ensurepip"`;
  }
  if (find(/No space left on device/) !== undefined) {
    return `Cannot fetch ${requirement}: the disk is full: ${MORE_SPACE}`;
  }
  const broken = find(/connection broken by|Could not fetch URL|Failed to establish a new connection/);
  if (broken !== undefined) {
    const reason = broken.match(/: (\[Errno[^'")]*|[^:'"()]*(?:timed out|refused|resolution)[^'")]*)/)?.[1] ??
      broken;
    return `Cannot fetch ${requirement}: pip cannot reach its package index (${reason.trim()}): ` +
      `check the network, or pip's proxy and index settings`;
  }
  if (find(/from versions: none/) !== undefined) {
    return `Cannot fetch ${requirement}: pip's package index does not have it or cannot be reached: ` +
      `check the network, or pip's proxy and index settings`;
  }
  const last = (find(/^ERROR:/) ?? lines.at(-1) ?? "no reason given").replace(/^ERROR:\s*/, "");
  return `Cannot fetch ${requirement}: pip says "${last}": ` +
    `see what "${python} -m pip download ${requirement}" prints`;
}

const EXTRACT = `
import re, zipfile
wheel, target, *patterns = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    members = [member for member in archive.infolist()
               if any(re.fullmatch(pattern, member.filename) for pattern in patterns)
               and ".." not in member.filename.split("/")]
    total, done = sum(member.file_size for member in members), 0
    for member in members:
        path = os.path.join(target, member.filename)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(member) as source, open(path, "wb") as sink:
            for chunk in iter(lambda: source.read(1 << 22), b""):
                sink.write(chunk)
                done += len(chunk)
                print(done, total)
            sink.flush()
            os.fsync(sink.fileno())
        if member.external_attr >> 16 & 0o111:
            os.chmod(path, 0o755)
`;

/**
 * Takes files out of a wheel, with their sums checked, and sees them onto the disk.
 *
 * @param patterns Python's regular expressions for whole paths within the wheel
 * @param target folder to put them in, under their own paths
 * @throws {SetupError} if the wheel is damaged or the disk full
 */
export async function extractWheel(
  wheel: string,
  patterns: readonly string[],
  target: string,
  tools: WheelTools,
  onBytes: OnBytes,
): Promise<void> {
  const { success, stderr } = await runPython({
    command: tools.python,
    script: EXTRACT,
    args: [wheel, target, ...patterns],
    cwd: tools.workspace,
    signal: tools.signal,
    onLine(line) {
      const [done, total] = line.split(" ").map(Number);
      if (done !== undefined) onBytes(done, total);
    },
  });
  if (success) return;
  if (/No space left on device/.test(stderr)) {
    throw new SetupError(`Cannot unpack ${wheel}: the disk is full: ${MORE_SPACE}`);
  }
  const last = stderr.trim().split("\n").at(-1);
  throw new SetupError(`Cannot unpack ${wheel}: Python says "${last}": run setup again`);
}

/** Removes a folder that may not be there. */
export function removeFolder(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Bytes of the largest file below a folder: pip writes a download twice, for itself and for its cache. */
function largestFile(folder: string): number {
  let largest = 0;
  try {
    for (const entry of Deno.readDirSync(folder)) {
      const path = join(folder, entry.name);
      largest = Math.max(largest, entry.isDirectory ? largestFile(path) : Deno.lstatSync(path).size);
    }
  } catch { /* pip has removed it meanwhile */ }
  return largest;
}
