/** Callbacks and logs as tfjs-layers' `fit` has them. @module */
import { tf } from "../../deps.ts";

/** Callbacks as `fit` takes them. */
export type Callbacks = tf.CustomCallbackArgs | tf.CustomCallbackArgs[] | tf.Callback | tf.Callback[];

/** What callbacks are told about the run. */
export interface CallbackParams {
  readonly epochs: number;
  readonly initialEpoch: number;
  readonly samples: number | undefined;
  readonly steps: number | undefined;
  readonly batchSize: number;
  readonly doValidation: boolean;
  readonly metrics: readonly string[];
}

/** The caller's callbacks and the history of the run. */
export function callbackList(
  callbacks: Callbacks | undefined,
  yieldEvery: tf.ModelFitArgs["yieldEvery"],
  model: tf.LayersModel,
  params: CallbackParams,
): { list: tf.CallbackList; history: tf.History } {
  const history = new tf.History();
  const given = callbacks === undefined ? [] : Array.isArray(callbacks) ? callbacks : [callbacks];
  const own = given.map((c) =>
    c instanceof tf.Callback || isCallback(c)
      ? c
      : new tf.CustomCallback(c as tf.CustomCallbackArgs, yieldEvery)
  );
  const list = new tf.CallbackList([...own, history] as never);
  list.setParams({ ...params, verbose: 0 } as never);
  list.setModel(model as never);
  return { list, history };
}

/** A callback made by tfjs-layers, such as `tf.callbacks.earlyStopping()`. */
function isCallback(value: unknown): boolean {
  return typeof (value as { setParams?: unknown }).setParams === "function";
}

/** Averages of a batch's logs over an epoch, weighted by its samples. */
export class EpochAverage {
  #samples = 0;
  readonly #totals: number[] = [];

  add(values: readonly number[], size: number): void {
    this.#samples += size;
    values.forEach((value, i) => this.#totals[i] = (this.#totals[i] ?? 0) + value * size);
  }

  /** The averages so far. */
  get values(): number[] {
    return this.#totals.map((total) => total / this.#samples);
  }
}

/** Names and values as an object. */
export function toLogs(
  names: readonly string[],
  values: readonly number[],
  prefix = "",
): Record<string, number> {
  return Object.fromEntries(names.map((name, i) => [prefix + name, values[i] ?? NaN]));
}
