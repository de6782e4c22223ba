/** A table of predicted times: every partition with every split size, and the best of them. @module */
import type { PartitionSpec } from "../../stages/partition.ts";
import { type CostModel, type Cut, type StepPlan, stepSeconds } from "./cost_model.ts";

/** One predicted way of training. */
export interface ForecastEntry {
  /** The layer that begins each stage after the first. */
  readonly partition: readonly string[];
  /** Samples in a micro-batch. */
  readonly splitSize: number;
  /** Seconds of a step. */
  readonly seconds: number;
}

/** What steps are predicted to take. */
export interface Forecast {
  /** Every partition with every split size, in the order in which they were asked for. */
  readonly entries: readonly ForecastEntry[];
  /** The fastest; of several, the first. */
  readonly best: ForecastEntry;
}

/** What to predict. */
export interface ForecastArgs {
  /** Samples in a batch. Default: 32. */
  readonly batchSize?: number;
  /**
   * Partitions, as the option `partition` takes them. Default: all that cut between the model's blocks, into as
   * many stages as there are devices.
   */
  readonly partitions?: readonly PartitionSpec[];
  /** Samples in a micro-batch. Default: 1, 2, 4 and so on up to the batch. */
  readonly splitSizes?: readonly number[];
}

/** 1, 2, 4 and so on, and the batch as a whole. */
export function splitSizesOf(batchSize: number): number[] {
  const sizes = [];
  for (let size = 1; size < batchSize; size *= 2) sizes.push(size);
  return [...sizes, batchSize];
}

/** @throws {RangeError} if there is nothing to predict */
export function checkCuts(cuts: readonly Cut[]): void {
  if (cuts.length > 0) return;
  throw new RangeError(
    "Cannot predict the time of a step: there is no partition, or no split size; give `partitions` and `splitSizes`",
  );
}

/** Predicts each cut's time. @throws {RangeError} without a cut */
export function forecast(model: CostModel, cuts: readonly Cut[], plan: StepPlan): Forecast {
  checkCuts(cuts);
  const { layers } = model.graph;
  const entries = cuts.map((cut): ForecastEntry => ({
    partition: cut.partition.cuts.map((position) => layers[position]!.name),
    splitSize: cut.splitSize,
    seconds: stepSeconds(model, cut, plan),
  }));
  return { entries, best: entries.reduce((best, entry) => entry.seconds < best.seconds ? entry : best) };
}
