/** Runs `deno task setup` as a process of its own. Not a test. @module */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const MAIN = fileURLToPath(new URL("../../runtime/tensorflow/setup/main.ts", import.meta.url));

/** Starts `deno task setup` with a cache in `folder`, and the fake pip. */
export function start(folder: string, args: string[], env: Record<string, string> = {}): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-prompt", "--quiet", "--allow-read", "--allow-write", "--allow-env", "--allow-ffi"],
      ...["--allow-run", "--allow-sys", MAIN, ...args],
    ],
    env: { STAGGER_TENSORFLOW: "", STAGGER_CACHE: join(folder, "cache"), ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** How a process ended. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Waits for a process. */
export async function ended(child: Deno.ChildProcess): Promise<Ended> {
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Runs it to its end. `--build cpu` unless the arguments say otherwise. */
export function run(folder: string, args: string[], env: Record<string, string> = {}): Promise<Ended> {
  return ended(start(folder, args.includes("--build") ? args : ["--build", "cpu", ...args], env));
}

/** Sleeps until `ready()`, at most ten seconds. */
export async function until(what: string, ready: () => boolean): Promise<void> {
  const end = performance.now() + 10_000;
  while (!ready()) {
    assert.ok(performance.now() < end, `Waited 10 s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether there is something of this name. */
export function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** What a folder holds, sorted; nothing if it is not there. */
export function names(folder: string): string[] {
  return exists(folder) ? Array.from(Deno.readDirSync(folder), (entry) => entry.name).sort() : [];
}

/** Every file below a folder. */
export function filesBelow(folder: string, prefix = ""): string[] {
  return Array.from(Deno.readDirSync(folder)).flatMap((entry) =>
    entry.isDirectory
      ? filesBelow(join(folder, entry.name), `${prefix}${entry.name}/`)
      : [prefix + entry.name]
  ).sort();
}

/** Whether a process runs. */
export function alive(process: number): boolean {
  try {
    Deno.kill(process, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}
