/** Runs specs in a process of their own: an engine may crash, and two cannot share TensorFlow.js. @module */
import { fileURLToPath } from "node:url";
import type { ChildOptions } from "./child_main.ts";
import type { Subject } from "./engines.ts";
import type { KernelComparison, Message, SpecResult } from "./messages.ts";

const CHILD = fileURLToPath(new URL("./child_main.ts", import.meta.url));
const PERMISSIONS = [
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-ffi",
  "--allow-run",
  "--allow-sys",
  "--allow-net",
];
/** Characters of the end of what a process said that an error repeats. */
const LAST_WORDS = 2000;

/** What a run gave. */
export interface SuiteResults {
  readonly engine: string;
  readonly specs: readonly SpecResult[];
  readonly kernels: readonly KernelComparison[];
}

/** Share of a run's time that specs take where their kernel calls are captured afterwards. */
const SPECS_SHARE = 0.7;

/** Called with how far it is, 0 to 1, and what it is at. */
export type OnProgress = (fraction: number, detail: string) => void;

/**
 * Runs the specs of one subject.
 *
 * @throws {Error} if the process ends before they do, with the spec that it was at and its last words
 */
export async function runInProcess(
  subject: Subject,
  options: ChildOptions,
  onProgress: OnProgress,
  signal?: AbortSignal,
): Promise<SuiteResults> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", ...PERMISSIONS, CHILD, subject, JSON.stringify(options)],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal,
  }).spawn();
  const collector = new Collector(options.capture, onProgress);
  const [words] = await Promise.all([lastWords(child.stderr), readLines(child.stdout, collector)]);
  const { code, signal: killedBy } = await child.status;
  if (!collector.ended) {
    const how = killedBy === null ? `with code ${code}` : `by ${killedBy}`;
    throw new Error(`The process of ${subject} ended ${how} ${collector.place}:\n${words.trim()}`);
  }
  return collector;
}

/** Gathers messages. */
class Collector implements SuiteResults {
  engine = "";
  readonly specs: SpecResult[] = [];
  readonly kernels: KernelComparison[] = [];
  ended = false;
  /** What it is at, for errors. */
  place = "before it began";
  #specCount = 0;
  #callCount = 0;
  #calls = 0;

  /** @param captures whether a second pass follows */
  constructor(readonly captures: boolean, readonly onProgress: OnProgress) {}

  take(message: Message): void {
    switch (message.kind) {
      case "engine":
        this.engine = message.description;
        break;
      case "specs":
        this.#specCount = message.count;
        break;
      case "begin":
        this.place = `in spec "${message.spec}"`;
        break;
      case "spec":
        this.specs.push(message.result);
        this.#tick(this.specs.length / this.#specCount * (this.captures ? SPECS_SHARE : 1));
        break;
      case "calls":
        this.#callCount = message.count;
        break;
      case "call":
        this.place = `in a captured call of kernel ${message.kernel}`;
        this.#tick(SPECS_SHARE + ++this.#calls / this.#callCount * (1 - SPECS_SHARE));
        break;
      case "kernel":
        this.kernels.push(message.result);
        break;
      case "end":
        this.ended = true;
    }
  }

  #tick(fraction: number): void {
    this.onProgress(fraction, this.place.replace(/^in (a )?/, ""));
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, collector: Collector): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) collector.take(JSON.parse(line));
  }
}

async function lastWords(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let words = "";
  for await (const bytes of stream) {
    words = (words + decoder.decode(bytes, { stream: true })).slice(-LAST_WORDS);
  }
  return words;
}
