/** Losses and metrics by the names and rules of tfjs-layers. @module */
import { tf } from "../deps.ts";
import { fromPortable, type FunctionLike, type PortableFunction, toPortable } from "./functions.ts";
import { internals, type LossFunction } from "./tfjs.ts";

/** One value, one per output, or by output name. */
export type PerOutput<T> = T | readonly T[] | Readonly<Record<string, T>>;

/** Loss and metrics as `compile` takes them. */
export interface LossArgs {
  /** One for all outputs, one each, or by output. */
  readonly loss: PerOutput<FunctionLike>;
  /** Any number; for all outputs or by output. */
  readonly metrics?:
    | FunctionLike
    | readonly FunctionLike[]
    | Readonly<Record<string, FunctionLike | FunctionLike[]>>;
}

/** The same as plain data. */
export interface PortableLosses {
  readonly loss: unknown;
  readonly metrics: unknown;
}

/** An output of the model, as far as losses care. */
export interface OutputSpec {
  readonly name: string;
  readonly shape: readonly (number | null)[];
}

/** What a stage computes at its outputs. */
export interface ResolvedLosses {
  /** One per output of the model. */
  readonly losses: readonly LossFunction[];
  /** Metric and the output that it looks at. */
  readonly metrics: readonly (readonly [LossFunction, number])[];
  /** "loss", then the metrics' names. */
  readonly names: readonly string[];
}

const LOSSES = [
  ...["meanSquaredError", "meanAbsoluteError", "meanAbsolutePercentageError", "meanSquaredLogarithmicError"],
  ...["squaredHinge", "hinge", "categoricalHinge", "logcosh", "categoricalCrossentropy"],
  ...["sparseCategoricalCrossentropy", "binaryCrossentropy", "kullbackLeiblerDivergence", "poisson"],
  "cosineProximity",
];
const METRICS = [
  ...["accuracy", "crossentropy", "binaryAccuracy", "categoricalAccuracy", "precision", "mse", "mae", "mape"],
  ...["cosine", "categoricalCrossentropy", "sparseCategoricalCrossentropy"],
];

/** An error of tfjs-layers about a name, with the names that there are. */
export function withKnownNames(error: unknown): unknown {
  const { message } = error as Error;
  const unknown = /^Unknown (loss|metric) (.*)/.exec(message);
  if (!unknown) return error;
  const names = unknown[1] === "loss" ? LOSSES : METRICS;
  return new RangeError(
    `Cannot use ${unknown[1]} "${unknown[2]}": expected one of ${names.join(", ")}, or a function`,
    { cause: error },
  );
}

/** Makes loss and metrics portable. @throws {TypeError} naming what cannot be sent */
export function portableLosses({ loss, metrics }: LossArgs): PortableLosses {
  return {
    loss: mapLeaves(loss, (f) => toPortable("loss", f as FunctionLike)),
    metrics: metrics === undefined
      ? undefined
      : mapLeaves(metrics, (f) => toPortable("metric", f as FunctionLike)),
  };
}

/**
 * Resolves names as `tf.LayersModel.compile` does, by letting it: "accuracy" depends on the loss and on the
 * output's shape.
 */
export async function resolveLosses(
  outputs: readonly OutputSpec[],
  portable: PortableLosses,
): Promise<ResolvedLosses> {
  const loss = await mapLeavesAsync(portable.loss, (f) => fromPortable(f as PortableFunction));
  const metrics = await mapLeavesAsync(portable.metrics, (f) => fromPortable(f as PortableFunction));
  const inputs = outputs.map(({ shape }) => tf.input({ batchShape: [...shape] }));
  const ends = inputs.map((input) =>
    tf.layers.activation({ activation: "linear" }).apply(input) as tf.SymbolicTensor
  );
  const stub = tf.model({ inputs, outputs: ends });
  internals(stub).outputNames = outputs.map(({ name }) => name); // several of one layer share its name
  try {
    stub.compile({ optimizer: "sgd", loss: loss as string, metrics: metrics as string[] });
    const { lossFunctions, metricsTensors, metricsNames } = internals(stub);
    return { losses: lossFunctions, metrics: metricsTensors, names: metricsNames };
  } finally {
    stub.dispose(); // its optimizer holds a tensor
  }
}

function isLeaf(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  // Both of a pair: an output of the model may be called "module" or "source".
  return "module" in value && "name" in value || "source" in value && "label" in value;
}

function mapLeaves(value: unknown, f: (leaf: unknown) => unknown): unknown {
  if (isLeaf(value)) return value === undefined ? undefined : f(value);
  if (Array.isArray(value)) return value.map((item) => mapLeaves(item, f));
  return Object.fromEntries(Object.entries(value as object).map(([key, item]) => [key, mapLeaves(item, f)]));
}

async function mapLeavesAsync(value: unknown, f: (leaf: unknown) => Promise<unknown>): Promise<unknown> {
  if (isLeaf(value)) return value === undefined ? undefined : await f(value);
  if (Array.isArray(value)) return await Promise.all(value.map((item) => mapLeavesAsync(item, f)));
  const entries = Object.entries(value as object);
  return Object.fromEntries(
    await Promise.all(entries.map(async ([key, item]) => [key, await mapLeavesAsync(item, f)] as const)),
  );
}
