/** What the benchmark is told on the command line. @module */
import { parseArgs } from "node:util";
import { type ScheduleName, SCHEDULES } from "../runtime/schedules/schedules.ts";

/** Strategies that the comparison knows, in the order of the table. */
export const BENCH_STRATEGIES = ["single", "modelParallel", "pipeline"] as const;

/** Name of a strategy. */
export type BenchStrategy = typeof BENCH_STRATEGIES[number];

/** What can be measured. */
export const COMMANDS = ["resnet50", "convolutions", "allreduce"] as const;

/** Name of a measurement. */
export type BenchCommand = typeof COMMANDS[number];

/** Settings of a run. */
export interface BenchOptions {
  readonly command: BenchCommand;
  readonly size: number;
  /** Whose convolutions are timed. */
  readonly model: "resnet50" | "unet";
  readonly batch: number;
  readonly microBatches: number;
  readonly steps: number;
  readonly devices: readonly string[] | undefined;
  readonly engine: "auto" | "tensorflow" | "wasm";
  readonly strategies: readonly BenchStrategy[];
  readonly schedules: readonly ScheduleName[];
  readonly partition: "auto" | readonly (string | number)[];
  /** "mnist", "synthetic" or a folder of images by class. */
  readonly data: string;
  readonly output: string;
  readonly json: string | undefined;
  /** Python with torch, for the peers. */
  readonly torch: string | undefined;
  /** Numbers of workers among which sums are timed. */
  readonly workers: readonly number[];
  /** Bytes that each of them contributes. */
  readonly bytes: readonly number[];
  readonly help: boolean;
}

const OPTIONS = {
  size: { type: "string", default: "128" },
  model: { type: "string", default: "resnet50" },
  batch: { type: "string" },
  "micro-batches": { type: "string", default: "8" },
  steps: { type: "string", default: "5" },
  devices: { type: "string" },
  engine: { type: "string", default: "auto" },
  strategies: { type: "string", default: BENCH_STRATEGIES.join(",") },
  schedule: { type: "string", default: SCHEDULES.join(",") },
  partition: { type: "string", default: "auto" },
  data: { type: "string" },
  full: { type: "boolean", default: false },
  output: { type: "string", default: "bench-results" },
  json: { type: "string" },
  torch: { type: "string" },
  workers: { type: "string", default: "2,3,4,6,8" },
  bytes: { type: "string", default: "4e3,4e4,4e5,4e6,4e7,1e8,4e8" },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** The text of `--help`. */
export const HELP = `Trains ResNet50 with every strategy on this machine's devices and compares them.

Usage: deno task bench [resnet50] [options]
       deno task bench convolutions [--model resnet50|unet] [--size N] [--batch N] [--engine NAME]
                                each way in which a model's convolutions can run, for N samples (4)
       deno task bench allreduce [--workers A,B] [--bytes A,B] [--steps N] [--torch PYTHON]
                                sums between workers: ring, parameter server, memcpy, and PyTorch's gloo

  --size N             images of N x N pixels (128, as published)
  --batch N            samples in an optimizer step (32; with --full 120)
  --micro-batches N    micro-batches that a pipeline cuts a batch into (8)
  --steps N            rounds that are timed; every strategy runs one step in each (5)
  --devices A,B        devices by name, such as cpu:0,cpu:1 or cuda:0,cuda:1 (what the machine has, at most two)
  --engine NAME        auto, tensorflow or wasm (auto)
  --strategies A,B     some of ${BENCH_STRATEGIES.join(",")} (all)
  --schedule A,B       some of ${SCHEDULES.join(",")}, one pipeline each (all)
  --partition P        auto, or the layer that begins each stage after the first, by name or index (auto)
  --data D             mnist, synthetic (1000 classes, mean squared error, as published), or a folder of images
                       with a sub-folder for each class (mnist; with --full synthetic)
  --full               the published setting: batch 120, 1000 classes, mean squared error
  --output DIR         where results.json, report.html and the plots go (bench-results)
  --json FILE          a copy of results.json
  --torch PYTHON       a Python with torch: its single-thread and pipelined training, or its all_reduce over
                       gloo, run in the same rounds
  --workers A,B        numbers of workers among which sums are timed (2,3,4,6,8)
  --bytes A,B          bytes that each of them contributes (4e3,4e4,4e5,4e6,4e7,1e8,4e8)
  --help

Results go to standard output, progress to standard error. Exit code 0: all went well.
`;

/**
 * Reads the command line.
 *
 * @throws {TypeError|RangeError} naming the value, what is expected and the remedy
 */
export function readOptions(args: string[]): BenchOptions {
  const { values, positionals } = parse(args);
  const [name = "resnet50", ...rest] = positionals;
  if (!(COMMANDS as readonly string[]).includes(name) || rest.length > 0) {
    throw new RangeError(
      `Cannot run "${positionals.join(" ")}": expected one of ${COMMANDS.join(", ")}; see --help`,
    );
  }
  const data = values.data ?? (values.full ? "synthetic" : "mnist");
  const command = name as BenchCommand;
  const batch = integer(
    "batch",
    values.batch ?? (command === "convolutions" ? "4" : values.full ? "120" : "32"),
    1,
  );
  const microBatches = integer("micro-batches", values["micro-batches"], 1);
  const strategies = someOf("strategies", values.strategies, BENCH_STRATEGIES);
  if (command === "resnet50" && strategies.includes("pipeline") && batch < microBatches) {
    throw new RangeError(
      `Cannot cut a batch of ${batch} into ${microBatches} micro-batches: expected --batch >= --micro-batches; ` +
        `give a larger --batch or fewer --micro-batches`,
    );
  }
  return {
    command,
    size: integer("size", values.size, 1),
    model: oneOf("model", values.model, ["resnet50", "unet"] as const),
    batch,
    microBatches,
    steps: integer("steps", values.steps, 1),
    devices: values.devices === undefined ? undefined : list(values.devices),
    engine: oneOf("engine", values.engine, ["auto", "tensorflow", "wasm"] as const),
    strategies,
    schedules: someOf("schedule", values.schedule, SCHEDULES),
    partition: values.partition === "auto"
      ? "auto"
      : list(values.partition).map((cut) => /^\d+$/.test(cut) ? Number(cut) : cut),
    data,
    output: values.output,
    json: values.json,
    torch: values.torch,
    workers: integers("workers", values.workers, 2),
    bytes: integers("bytes", values.bytes, 4, 4),
    help: values.help,
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new TypeError(`${(error as Error).message.replaceAll("\n", " ").replace(/\.$/, "")}; see --help`);
  }
}

function list(text: string): string[] {
  return text.split(",").map((part) => part.trim()).filter((part) => part !== "");
}

function integer(name: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) {
    throw new RangeError(`Cannot use --${name} ${text}: expected an integer >= ${least}`);
  }
  return value;
}

function integers(name: string, text: string, least: number, unit = 1): number[] {
  const values = list(text).map(Number);
  if (values.length === 0 || !values.every((value) => value >= least && Number.isSafeInteger(value / unit))) {
    const kind = unit === 1 ? "integers" : `multiples of ${unit}`;
    throw new RangeError(`Cannot use --${name} "${text}": expected ${kind} >= ${least}, such as ${
      OPTIONS[
        name as "workers" | "bytes"
      ].default
    }`);
  }
  return [...new Set(values)].sort((a, b) => a - b);
}

function someOf<T extends string>(name: string, text: string, allowed: readonly T[]): T[] {
  const values = list(text).map((value) => oneOf(name, value, allowed));
  if (values.length === 0) {
    throw new RangeError(`Cannot use --${name} "${text}": expected some of ${allowed.join(",")}`);
  }
  return [...new Set(values)];
}

function oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
  if (!(allowed as readonly string[]).includes(value)) {
    throw new RangeError(`Cannot use --${name} ${value}: expected some of ${allowed.join(",")}`);
  }
  return value as T;
}
