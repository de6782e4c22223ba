/** What the tables say of a strategy, and how each figure is written. @module */
import type { Row } from "./rows.ts";

/** One column of a table. */
export interface Column {
  readonly title: string;
  /** Unit or second line of the heading; may be empty. */
  readonly unit: string;
  /** What the figure means, for a reader who does not know. */
  readonly meaning: string;
  readonly text?: true;
  /** The smaller, the sooner it is left out where room is short; without, it stays. */
  readonly rank?: number;
  /** Only where there is room for all: the page, not the terminal. */
  readonly pageOnly?: true;
  cell(row: Row): string;
}

/** Written where a figure was not measured or does not apply. */
export const NOTHING = "–";

const STRATEGY: Column = {
  title: "strategy",
  unit: "",
  meaning: "how the model was trained",
  text: true,
  cell: (row) => row.name,
};
const SECONDS: Column = {
  title: "seconds",
  unit: "per step",
  meaning: "median over rounds of the seconds that one batch takes",
  cell: ({ result }) => significant(result.secondsPerStep),
};

/** Every column of the ResNet50 comparison, in order. */
export const COLUMNS: readonly Column[] = [
  STRATEGY,
  SECONDS,
  {
    title: "rounds",
    unit: "min–max",
    meaning: "fastest and slowest round, seconds per step",
    rank: 3,
    cell: ({ result: { rounds } }) =>
      rounds.length < 2 ? NOTHING : `${significant(Math.min(...rounds))}–${significant(Math.max(...rounds))}`,
  },
  {
    title: "images",
    unit: "per s",
    meaning: "images trained per second",
    cell: ({ result }) => significant(result.imagesPerSecond),
  },
  {
    title: "gain",
    unit: "%",
    meaning: "against sequential in the same round, median over rounds; +100 is twice as fast",
    cell: (row) => row.kind === "single" ? NOTHING : signed(row.result.gainPercent),
  },
  {
    title: "loss",
    unit: "at end",
    meaning: "loss of the last step",
    rank: 6,
    cell: ({ result }) => significant(result.loss, 4),
  },
  {
    title: "bubble",
    unit: "%",
    meaning: "share of all devices' time spent waiting within a step",
    rank: 7,
    cell: ({ result }) => percent(result.bubbleShare),
  },
  {
    title: "transfer",
    unit: "%",
    meaning: "share of all devices' time spent copying to and from rings",
    rank: 4,
    cell: ({ result }) => percent(result.transferShare),
  },
  {
    title: "memory",
    unit: "peak GB",
    meaning: "at the peak of a step: weights, accumulators, rings, activations and temporaries",
    rank: 5,
    cell: ({ result }) => figure(result.peakMemory, (bytes) => significant(bytes / 1e9)),
  },
  {
    title: "host ms",
    unit: "/action",
    meaning: "host time per action outside the engine's calls and the waits",
    rank: 2,
    cell: ({ result }) => figure(result.hostMsPerAction, (ms) => significant(ms, 2)),
  },
  {
    title: "cores",
    unit: "busy",
    meaning: "CPU time of the process divided by wall time",
    pageOnly: true,
    cell: ({ result }) => figure(result.cpuPerWall, (cores) => significant(cores, 2)),
  },
  {
    title: "micro-",
    unit: "batches",
    meaning: "micro-batches that a batch was cut into",
    pageOnly: true,
    cell: ({ result }) => figure(result.microBatches, String),
  },
  {
    title: "capture",
    unit: "s",
    meaning: "seconds that capturing took before the first step, the slowest stage's",
    pageOnly: true,
    cell: ({ result }) => figure(result.captureSeconds, (seconds) => significant(seconds, 2)),
  },
  {
    title: "partition",
    unit: "cut at",
    meaning: "layers that begin each stage after the first",
    text: true,
    rank: 1,
    cell: ({ result: { partition = [] } }) => partition.length === 0 ? NOTHING : partition.join(", "),
  },
];

/** Titles of the columns that the U-Net comparison has as well, in its order. */
const SHARED = [
  "rounds",
  "images",
  "bubble",
  "transfer",
  "memory",
  "host ms",
  "cores",
  "micro-",
  "capture",
  "partition",
];

/** Every column of the U-Net comparison: its published table first. */
export const UNET_COLUMNS: readonly Column[] = [
  STRATEGY,
  {
    title: "seconds",
    unit: "per epoch",
    meaning: "seconds per step for every batch of the training data",
    cell: ({ result }) => figure(result.secondsPerEpoch, significant),
  },
  {
    title: "speedup",
    unit: "",
    meaning: "against single in the same round, median over rounds; 2 is twice as fast",
    cell: (row) => row.kind === "single" ? "1" : `${significant(row.result.speedup)}`,
  },
  {
    title: "loss",
    unit: "held out",
    meaning: "of images that were held out, after training",
    cell: ({ result }) => figure(result.evaluation?.loss, (loss) => significant(loss)),
  },
  {
    title: "IoU",
    unit: "held out",
    meaning: "intersection over union of predicted and true masks, the mean over images that were held out",
    cell: ({ result }) => figure(result.evaluation?.iou, (iou) => iou.toFixed(3)),
  },
  SECONDS,
  ...SHARED.map((title) => COLUMNS.find((column) => column.title === title)!),
];

/** From here on a number is written with an exponent. */
const LARGE = 1e9;

/** A number with `digits` significant digits, without an exponent unless it is very large. */
export function significant(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return NOTHING;
  if (Math.abs(value) >= LARGE) return value.toExponential(digits - 1);
  return value.toLocaleString("en", {
    minimumSignificantDigits: digits,
    maximumSignificantDigits: digits,
    useGrouping: false,
  });
}

/** A number with its sign. */
export function signed(value: number, decimals = 1): string {
  if (!Number.isFinite(value)) return NOTHING;
  return value.toLocaleString("en", {
    signDisplay: "exceptZero",
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    useGrouping: false,
  });
}

function percent(share: number | undefined): string {
  return figure(share, (value) => (value * 100).toFixed(1));
}

function figure(value: number | undefined, write: (value: number) => string): string {
  return value === undefined || !Number.isFinite(value) ? NOTHING : write(value);
}
