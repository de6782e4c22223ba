/** What a trainer's methods take. @module */
import type { tf } from "../../deps.ts";
import type { Clipping } from "../../stages/clipping.ts";
import type { LossArgs } from "../../stages/losses.ts";
import type { OptimizerConfig } from "../../stages/optimizers.ts";
import { checkInteger, checkKeys, shown } from "../checks.ts";
import type { Callbacks } from "./callbacks.ts";
import type { Samples } from "../data/samples.ts";

/** What `compile` takes: tfjs-layers' arguments, and optimizers and functions that tfjs cannot name. */
export interface CompileArgs {
  /** A name, a `tf.train` optimizer, or `{ name: "adamw", learningRate, weightDecay, ... }`. */
  readonly optimizer: string | tf.Optimizer | OptimizerConfig;
  /** tfjs-layers' name, a function that needs nothing but `tf` and its arguments, or one in a module. */
  readonly loss: LossArgs["loss"];
  /** Likewise; "accuracy" fits itself to the loss. */
  readonly metrics?: LossArgs["metrics"];
  /** Most that the norm of all gradients together may be: they are scaled to it, before any weight decay. */
  readonly clipNorm?: number;
  /** Most that an element of a gradient may be, and least with a minus: larger ones are set to it. */
  readonly clipValue?: number;
}

/** What `compile` knows. */
export const COMPILE_ARGS: readonly (keyof CompileArgs)[] = [
  "optimizer",
  "loss",
  "metrics",
  "clipNorm",
  "clipValue",
];

/** One tensor, several in the model's order, or by name. */
export type Data = tf.Tensor | tf.Tensor[] | { [name: string]: tf.Tensor };

/** Batches on demand: `{ xs, ys }` from a dataset, or samples that are read one by one. */
export type BatchedData = tf.data.Dataset<tf.TensorContainer> | Samples;

/** What `fit` takes beside the data, as in tfjs-layers. */
export interface FitArgs {
  /** Samples in a batch. Default: 32. */
  readonly batchSize?: number;
  /** Default: 1. */
  readonly epochs?: number;
  /** Number of the first epoch: an interrupted run goes on with it. Default: 0. */
  readonly initialEpoch?: number;
  /** Default: true. The order is a function of the trainer's seed and of the epoch. */
  readonly shuffle?: boolean;
  /** As in tfjs-layers; losses and metrics come as numbers. */
  readonly callbacks?: Callbacks;
  /** Evaluated at each epoch's end. */
  readonly validationData?: [Data, Data] | BatchedData;
  /** Share of the samples, from their end, kept for validation; for tensors. */
  readonly validationSplit?: number;
  /** How often callbacks leave this thread to others, as in tfjs-layers. */
  readonly yieldEvery?: tf.ModelFitArgs["yieldEvery"];
  /** Batches in an epoch of a dataset. Default: all that it yields. */
  readonly batchesPerEpoch?: number;
  /** Batches of a validation dataset. Default: all that it yields. */
  readonly validationBatches?: number;
  /** Taken for the sake of tfjs-layers; nothing is printed. */
  readonly verbose?: number;
}

/** What `evaluate` and `predict` take beside the data. */
export interface EvaluateArgs {
  /** Default: 32. */
  readonly batchSize?: number;
  /** Taken for the sake of tfjs-layers; nothing is printed. */
  readonly verbose?: number;
}

const FIT_ARGS = new Set<string>(
  [
    "batchSize",
    "epochs",
    "initialEpoch",
    "shuffle",
    "callbacks",
    "validationData",
    "validationSplit",
    "yieldEvery",
    "batchesPerEpoch",
    "validationBatches",
    "verbose",
  ] satisfies (keyof FitArgs)[],
);
const EVALUATE_ARGS = new Set<string>(["batchSize", "verbose"] satisfies (keyof EvaluateArgs)[]);

/**
 * How gradients are clipped.
 *
 * @throws {TypeError} for both ways at once, {RangeError} for a limit that cannot be
 */
export function clippingOf({ clipNorm, clipValue }: CompileArgs): Clipping | undefined {
  checkLimit("clipNorm", clipNorm);
  checkLimit("clipValue", clipValue);
  if (clipNorm !== undefined && clipValue !== undefined) {
    throw new TypeError(
      `Cannot use clipNorm ${clipNorm} together with clipValue ${clipValue}: give one of them`,
    );
  }
  if (clipNorm !== undefined) return { by: "norm", limit: clipNorm };
  return clipValue === undefined ? undefined : { by: "value", limit: clipValue };
}

function checkLimit(name: "clipNorm" | "clipValue", limit: unknown): void {
  if (limit === undefined || Number.isFinite(limit) && limit as number > 0) return;
  throw new RangeError(
    `Cannot use ${name} ${shown(limit)}: expected a finite number above 0; leave it out not to clip`,
  );
}

/** @throws {TypeError|RangeError} for an option that is not known, or a value that cannot be */
export function checkFitArgs(args: FitArgs): void {
  checkKeys("fit", args, FIT_ARGS);
  const { batchSize, epochs, initialEpoch, batchesPerEpoch, validationBatches, validationSplit } = args;
  checkInteger("batchSize", batchSize, 1);
  checkInteger("epochs", epochs, 1);
  checkInteger("initialEpoch", initialEpoch, 0);
  checkInteger("batchesPerEpoch", batchesPerEpoch, 1);
  checkInteger("validationBatches", validationBatches, 1);
  if (validationSplit !== undefined && !(validationSplit > 0 && validationSplit < 1)) {
    throw new RangeError(`Cannot use validationSplit ${validationSplit}: expected a number between 0 and 1`);
  }
}

/** @throws {TypeError|RangeError} for an option that is not known, or a value that cannot be */
export function checkEvaluateArgs(method: "evaluate" | "predict", args: EvaluateArgs): void {
  checkKeys(method, args, EVALUATE_ARGS);
  checkInteger("batchSize", args.batchSize, 1);
}
