/**
 * The process in which specs run: `child_main.ts SUBJECT OPTIONS`, the options as JSON. It tells what happens on
 * standard output; what specs print goes to standard error.
 * @module
 */
import type { Message } from "./messages.ts";
import type { Subject } from "./engines.ts";

/** What the process is told. */
export interface ChildOptions {
  readonly filter: readonly string[];
  /** Whether to record kernel calls, and to run them again as captured functions. */
  readonly capture: boolean;
}

async function main(subject: Subject, { filter, capture }: ChildOptions): Promise<void> {
  const encoder = new TextEncoder();
  const tell = (message: Message) => {
    let bytes = encoder.encode(`${JSON.stringify(message)}\n`);
    while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
  };
  for (const name of ["log", "info", "debug", "dir"] as const) console[name] = console.error;
  const { runSuite } = await import("./run.ts");
  if (!capture) await runSuite({ subject, filter }, tell);
  else {
    const { KernelRecorder } = await import("../capture/recorder.ts");
    const { compareCalls } = await import("../capture/compare.ts");
    const recorder = new KernelRecorder();
    const { backend } = await runSuite({ subject, filter, recorder }, tell);
    await compareCalls(backend!, recorder.calls, tell);
  }
  tell({ kind: "end" });
}

if (import.meta.main) {
  const [subject, options] = Deno.args;
  await main(subject as Subject, JSON.parse(options!));
  Deno.exit(0); // specs leave timers behind
}
