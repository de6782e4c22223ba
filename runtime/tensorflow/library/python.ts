/** Asks the machine's Python. Nothing of Stagger runs in it: it has pip, and may have TensorFlow. @module */

/** Names under which Python 3 is looked for, in order. */
export const PYTHONS = ["python3", "python"] as const;

/** What a Python said. */
export interface PythonAnswer {
  readonly success: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs Python and waits for it.
 *
 * @param command e.g. "python3"
 * @returns undefined if there is no such command, or `--allow-run` is not given
 */
export function askPython(command: string, args: readonly string[]): PythonAnswer | undefined {
  // Asked for before, so that no prompt appears in the middle of a run.
  if (Deno.permissions.querySync({ name: "run", command }).state !== "granted") return undefined;
  try {
    const { success, stdout, stderr } = new Deno.Command(command, {
      args: [...args],
      cwd: "/", // Python looks for modules in its working folder
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).outputSync();
    const decoder = new TextDecoder();
    return { success, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    return { success: false, stdout: "", stderr: (error as Error).message };
  }
}

/** A Python 3. */
export interface Python {
  readonly command: string;
  /** Such as "3.11.7". */
  readonly version: string;
}

/** The first Python 3 on the path. */
export function findPython(): Python | undefined {
  for (const command of PYTHONS) {
    const answer = askPython(command, ["-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]);
    const version = answer?.success ? answer.stdout.trim() : "";
    if (version.startsWith("3.")) return { command, version };
  }
}

/** The version of a Python's pip; undefined if it has none. */
export function pipVersion(command: string): string | undefined {
  return askPython(command, ["-m", "pip", "--version"])?.stdout.match(/^pip (\S+)/)?.[1];
}

/** Where a Python keeps packages. */
export interface PythonPackages {
  /** Folders of the package `tensorflow`, usually one or none. */
  readonly tensorflow: readonly string[];
  /** Folders of the package `nvidia`, which NVIDIA's packages share. */
  readonly nvidia: readonly string[];
}

/** Looks packages up without importing them. */
const LOCATE = `
import importlib.util, json
def folders(name):
    spec = importlib.util.find_spec(name)
    return list(spec.submodule_search_locations or []) if spec else []
print(json.dumps({name: folders(name) for name in ("tensorflow", "nvidia")}))
`;

/**
 * Asks a Python where its packages lie.
 *
 * @returns what it said instead, if it could not answer; undefined if there is no such command
 */
export function locatePackages(command: string): PythonPackages | string | undefined {
  const answer = askPython(command, ["-c", LOCATE]);
  if (answer === undefined) return undefined;
  try {
    return JSON.parse(answer.stdout);
  } catch {
    return answer.stderr.trim().split("\n").at(-1) || "gave no answer";
  }
}
