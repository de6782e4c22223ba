/** A Python that works for Stagger and ends when Stagger ends, whatever ends it. @module */

/** Ends the process when its standard input closes, as it does when the process at the other end is gone. */
const GUARD = `
import os, sys, threading
def leave():
    while os.read(0, 1):
        pass
    os._exit(1)
threading.Thread(target=leave, daemon=True).start()
`;

/** How to run it. */
export interface PythonChildOptions {
  /** e.g. "python3" */
  readonly command: string;
  /** Program text. `sys` and `os` are imported already. */
  readonly script: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends it at once. */
  readonly signal?: AbortSignal;
  /** Hears each line of its standard output. */
  onLine?(line: string): void;
}

/**
 * Runs a program in Python to its end.
 *
 * @returns whether it succeeded, and what it wrote to standard error
 * @throws the signal's reason, if it was given
 */
export async function runPython(options: PythonChildOptions): Promise<{ success: boolean; stderr: string }> {
  options.signal?.throwIfAborted();
  const child = new Deno.Command(options.command, {
    args: ["-c", GUARD + options.script, ...options.args],
    cwd: options.cwd,
    env: { ...options.env, PYTHONUNBUFFERED: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const kill = () => {
    try {
      child.kill("SIGKILL");
    } catch { /* has ended already */ }
  };
  options.signal?.addEventListener("abort", kill, { once: true });
  try {
    const [status, stderr] = await Promise.all([
      child.status,
      new Response(child.stderr).text(),
      readLines(child.stdout, options.onLine),
    ]);
    options.signal?.throwIfAborted();
    return { success: status.success, stderr };
  } finally {
    options.signal?.removeEventListener("abort", kill);
    await child.stdin.close().catch(() => {}); // its reader is gone
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine?: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine?.(line);
  }
  if (rest !== "") onLine?.(rest);
}
