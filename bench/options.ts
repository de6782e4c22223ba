/** What the benchmark is told on the command line. @module */
import { parseArgs } from "node:util";
import { type ScheduleName, SCHEDULES } from "../runtime/schedules/schedules.ts";

/** Strategies that the comparison knows, in the order of the table. */
export const BENCH_STRATEGIES = ["single", "dataParallel", "modelParallel", "pipeline"] as const;

/** Name of a strategy. */
export type BenchStrategy = typeof BENCH_STRATEGIES[number];

/** The comparisons of strategies: what runs without a command. */
export const COMPARISONS = ["resnet50", "unet"] as const;

/** What can be measured. */
export const COMMANDS = ["resnet50", "unet", "convolutions", "allreduce"] as const;

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
  /** U-Net: the first alone is run; named together with ResNet50, it may be given several. */
  readonly schedules: readonly ScheduleName[];
  readonly partition: "auto" | readonly (string | number)[];
  /**
   * "synthetic", or a folder. ResNet50: "mnist", or images by class; U-Net: "digits", or folders "images" and "masks".
   */
  readonly data: string;
  /** U-Net: whether every partition is measured with every split size. */
  readonly enumerate: boolean;
  /** U-Net: rounds as passes over the data, in place of `steps`. */
  readonly epochs: number | undefined;
  /** U-Net: the one split size of its pipeline. */
  readonly splitSize: number | undefined;
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

/** A U-Net halves height and width five times. */
const UNET_STEP = 32;

/** What is taken where an option is not given. */
const DEFAULTS = {
  resnet50: { size: "128", batch: "32", steps: "5", data: "mnist", schedule: SCHEDULES.join(",") },
  unet: { size: "64", batch: "16", steps: "24", data: "digits", schedule: "zero-bubble" },
  convolutions: { size: "128", batch: "4", steps: "5", data: "mnist", schedule: SCHEDULES.join(",") },
  allreduce: { size: "128", batch: "32", steps: "5", data: "mnist", schedule: SCHEDULES.join(",") },
} as const satisfies Record<BenchCommand, unknown>;

const OPTIONS = {
  size: { type: "string" },
  model: { type: "string", default: "resnet50" },
  batch: { type: "string" },
  "micro-batches": { type: "string", default: "8" },
  steps: { type: "string" },
  devices: { type: "string" },
  engine: { type: "string", default: "auto" },
  strategies: { type: "string", default: BENCH_STRATEGIES.join(",") },
  schedule: { type: "string" },
  partition: { type: "string", default: "auto" },
  "split-size": { type: "string" },
  enumerate: { type: "boolean", default: false },
  epochs: { type: "string" },
  data: { type: "string" },
  full: { type: "boolean", default: false },
  output: { type: "string", default: "bench-results" },
  json: { type: "string" },
  torch: { type: "string" },
  workers: { type: "string", default: "2,3,4,6,8" },
  bytes: { type: "string", default: "4e3,4e4,4e5,4e6,4e7,1e8,4e8" },
  help: { type: "boolean", short: "h", default: false },
} as const;

const STRATEGIES_COMPARED: readonly BenchCommand[] = COMPARISONS;
const REPORTED: readonly BenchCommand[] = [...COMPARISONS, "allreduce"];
const COMPUTED: readonly BenchCommand[] = [...COMPARISONS, "convolutions"];

/** The commands that take each option: with another it would do nothing, and is refused. */
const TAKEN_BY: Readonly<Record<keyof typeof OPTIONS, readonly BenchCommand[]>> = {
  size: COMPUTED,
  model: ["convolutions"],
  batch: COMPUTED,
  "micro-batches": ["resnet50"],
  steps: REPORTED,
  devices: STRATEGIES_COMPARED,
  engine: COMPUTED,
  strategies: STRATEGIES_COMPARED,
  schedule: STRATEGIES_COMPARED,
  partition: STRATEGIES_COMPARED,
  "split-size": ["unet"],
  enumerate: ["unet"],
  epochs: ["unet"],
  data: STRATEGIES_COMPARED,
  full: ["resnet50"],
  output: REPORTED,
  json: REPORTED,
  torch: REPORTED,
  workers: ["allreduce"],
  bytes: ["allreduce"],
  help: COMMANDS,
};

/** The strategies that take an option, where not all do: without any of them it would do nothing. */
const NEEDS: Readonly<Partial<Record<keyof typeof OPTIONS, readonly BenchStrategy[]>>> = {
  "micro-batches": ["pipeline"],
  schedule: ["pipeline"],
  partition: ["modelParallel", "pipeline"],
  "split-size": ["pipeline"],
  enumerate: ["pipeline"],
};

/** Data that a comparison knows by name. */
const NAMED_DATA = { resnet50: "mnist", unet: "digits" } as const;

/** The text of `--help`. */
export const HELP = `Trains models with every strategy on this machine's devices and compares them.

Usage: deno task bench [options]            ResNet50, then U-Net
       deno task bench resnet50 [options]   ResNet50 on images by class
       deno task bench unet [options]       U-Net with a ResNet34 encoder on images and masks
       deno task bench convolutions [--model resnet50|unet] [--size N] [--batch N] [--engine NAME]
                                each way in which a model's convolutions can run, for N samples (4)
       deno task bench allreduce [--workers A,B] [--bytes A,B] [--steps N] [--torch PYTHON]
                                sums between workers: ring, parameter server, memcpy, and PyTorch's gloo

  --size N             images of N x N pixels (ResNet50: 128, as published; U-Net: 64)
  --batch N            samples in an optimizer step (ResNet50: 32, with --full 120; U-Net: 16)
  --steps N            rounds that are timed; every strategy runs one step in each (ResNet50: 5; U-Net: 24, after
                       which each is tried on images that were held out)
  --devices A,B        devices by name, such as cpu:0,cpu:1 or cuda:0,cuda:1 (what the machine has, at most two)
  --engine NAME        auto, tensorflow or wasm (auto)
  --strategies A,B     some of ${BENCH_STRATEGIES.join(",")} (all)
  --schedule A,B       some of ${SCHEDULES.join(",")}
                       (ResNet50: all, one pipeline each; U-Net: one, zero-bubble; without a command the first)
  --partition P        auto, or the layer or block that begins each stage after the first, by name or index (auto)
  --data D             synthetic (ResNet50: 1000 classes, mean squared error, as published), or a folder
                       (ResNet50: images in a sub-folder for each class, or mnist, the default;
                       U-Net: sub-folders images and masks with files of the same names, or digits, the default)
  --output DIR         where results.json, report.html, the plots and tables go (bench-results)
  --json FILE          a copy of results.json
  --torch PYTHON       a Python with torch: its training, or its all_reduce over gloo, runs in the same rounds
  --workers A,B        numbers of workers among which sums are timed (2,3,4,6,8)
  --bytes A,B          bytes that each of them contributes (4e3,4e4,4e5,4e6,4e7,1e8,4e8)
  --help

ResNet50 alone:
  --micro-batches N    micro-batches that a pipeline cuts a batch into (8)
  --full               the published setting: batch 120, 1000 classes, mean squared error

U-Net alone:
  --enumerate          measure every partition between blocks with split sizes 1, 2, 4, ... and take the best; without
                       it, the best by prediction is taken. Ctrl-C keeps what was measured
  --epochs N           train for so many passes over the data, in place of --steps
  --split-size N       samples in a micro-batch of its pipeline, in place of the best

An option that would do nothing is refused. Without a command, what either comparison takes is taken.
Results go to standard output, progress to standard error. Exit code 0: all went well.
`;

/**
 * Reads the command line.
 *
 * @returns a run for each measurement: both comparisons where none is named
 * @throws {TypeError|RangeError} naming the value, what is expected and the remedy
 */
export function readRuns(args: string[]): BenchOptions[] {
  const parsed = parse(args);
  const { values, positionals: [name, ...rest] } = parsed;
  if (name === undefined) {
    for (const option of ["partition", "data"] as const) {
      const value = values[option];
      if (value === undefined || value === "auto" || value === "synthetic") continue;
      throw new RangeError(
        `Cannot use --${option} ${value} for ${COMPARISONS.join(" and ")} at once: name one of them`,
      );
    }
    refuseUseless(parsed, COMPARISONS);
    return COMPARISONS.map((command) => readRun(command, parsed));
  }
  if (!(COMMANDS as readonly string[]).includes(name) || rest.length > 0) {
    throw new RangeError(
      `Cannot run "${[name, ...rest].join(" ")}": expected one of ${COMMANDS.join(", ")}; see --help`,
    );
  }
  const command = name as BenchCommand;
  refuseUseless(parsed, [command]);
  return [readRun(command, parsed)];
}

/** @throws {TypeError} for an option that none of these commands would heed */
function refuseUseless({ values, given }: ReturnType<typeof parse>, commands: readonly BenchCommand[]): void {
  const together = commands.join(" and ");
  for (const option of given) {
    const takers = TAKEN_BY[option];
    if (!commands.some((command) => takers.includes(command))) {
      throw new TypeError(`Cannot use --${option} with ${together}: it is an option of ${takers.join(", ")}`);
    }
    const needed = NEEDS[option];
    if (needed && !needed.some((strategy) => list(values.strategies).includes(strategy))) {
      throw new TypeError(
        `Cannot use --${option} with --strategies ${values.strategies}: it is an option of ${
          needed.join(", ")
        }; ` +
          `name one of these or leave --${option} out`,
      );
    }
  }
  if (commands.length > 1 || commands[0] !== "unet") return;
  if (given.has("epochs") && given.has("steps")) {
    throw new TypeError("Cannot use both --epochs and --steps for U-Net: expected one of them");
  }
  if (list(values.schedule ?? "").length > 1) {
    throw new RangeError(`Cannot use --schedule ${values.schedule} with unet: expected one schedule`);
  }
}

function readRun(command: BenchCommand, { values }: ReturnType<typeof parse>): BenchOptions {
  const defaults = DEFAULTS[command];
  const full = values.full && command === "resnet50";
  const batch = integer("batch", values.batch ?? (full ? "120" : defaults.batch), 1);
  const microBatches = integer("micro-batches", values["micro-batches"], 1);
  const strategies = someOf("strategies", values.strategies, BENCH_STRATEGIES);
  if (command === "resnet50" && strategies.includes("pipeline") && batch < microBatches) {
    throw new RangeError(
      `Cannot cut a batch of ${batch} into ${microBatches} micro-batches: expected --batch >= --micro-batches; ` +
        `give a larger --batch or fewer --micro-batches`,
    );
  }
  const size = integer("size", values.size ?? defaults.size, 1);
  if (command === "unet" && size % UNET_STEP !== 0) {
    throw new RangeError(`Cannot use --size ${size} for a U-Net: expected a multiple of ${UNET_STEP}`);
  }
  const splitSize = values["split-size"] === undefined
    ? undefined
    : integer("split-size", values["split-size"], 1);
  if (command === "unet" && splitSize !== undefined && splitSize > batch) {
    throw new RangeError(
      `Cannot cut a batch of ${batch} into micro-batches of ${splitSize}: expected --split-size <= --batch; ` +
        `give a larger --batch or a smaller --split-size`,
    );
  }
  const data = values.data ?? (full ? "synthetic" : defaults.data);
  refuseOthersData(command, data);
  return {
    command,
    size,
    model: oneOf("model", values.model, ["resnet50", "unet"] as const),
    batch,
    microBatches,
    steps: integer("steps", values.steps ?? defaults.steps, 1),
    devices: values.devices === undefined ? undefined : list(values.devices),
    engine: oneOf("engine", values.engine, ["auto", "tensorflow", "wasm"] as const),
    strategies,
    schedules: someOf("schedule", values.schedule ?? defaults.schedule, SCHEDULES),
    partition: values.partition === "auto"
      ? "auto"
      : list(values.partition).map((cut) => /^\d+$/.test(cut) ? Number(cut) : cut),
    data,
    enumerate: values.enumerate,
    epochs: values.epochs === undefined ? undefined : integer("epochs", values.epochs, 1),
    splitSize,
    output: values.output,
    json: values.json,
    torch: values.torch,
    workers: integers("workers", values.workers, 2),
    bytes: integers("bytes", values.bytes, 4, 4),
    help: values.help,
  };
}

/** @throws {RangeError} for the other comparison's data */
function refuseOthersData(command: BenchCommand, data: string): void {
  if (command !== "resnet50" && command !== "unet") return;
  const own = NAMED_DATA[command];
  if (data === own || !Object.values<string>(NAMED_DATA).includes(data)) return;
  throw new RangeError(
    `Cannot use --data ${data} with ${command}: expected ${own}, synthetic or a folder; ` +
      `write ./${data} for a folder of that name`,
  );
}

/** Values by option, those that are given, and the rest of the words. */
function parse(args: string[]) {
  try {
    const { values, positionals, tokens } = parseArgs({
      args,
      options: OPTIONS,
      allowPositionals: true,
      tokens: true,
    });
    const given = new Set(
      tokens.flatMap((token) => token.kind === "option" ? [token.name as keyof typeof OPTIONS] : []),
    );
    return { values, positionals, given };
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
