/**
 * A stage's F, B and W for one set of shapes, as captured functions.
 *
 * ```
 *   F   inputs, targets, share      -> outputs, results, what the backward keeps ("saved")
 *   B   saved, output gradients     -> input gradients, what W keeps ("extra")
 *   W   saved, extra                -> accumulators, in place
 *   BW  B and W as one
 * ```
 * A weight's gradient that falls out of B is added to its accumulator there. One that W computes is assigned by
 * the step's first W and added by later ones, so that nothing large is ever zeroed.
 * @module
 */
import type { BatchStatistics } from "../../../stages/context.ts";
import type { Variable } from "../binding/variable.ts";
import type { CallPlan } from "./call_plan.ts";
import type { FrameLayout } from "./frame.ts";
import type { CapturedFunction } from "./captured_function.ts";
import type { Draw } from "./random.ts";

/** What a program's functions read and write beside their arguments. */
export interface StageVariables {
  /** By position in the stage's weights; undefined for weights that are not trained. */
  readonly accumulators: readonly (Variable | undefined)[];
  /** Packed sums of the statistics of these BatchNorm calls, in the order of the forward. */
  statistics(order: readonly StatisticsCall[]): Variable;
}

/** One call of a BatchNorm layer in a forward. */
export interface StatisticsCall {
  readonly layer: BatchStatistics["layer"];
  readonly channels: number;
}

/** A function that is run for the first micro-batch of a step in one form, and for later ones in another. */
export interface FirstAndLater<F = CallPlan> {
  readonly first: F;
  readonly later: F;
}

/** Positions among the layout's arguments of the first of each kind; those of one kind stand in a row. */
export interface ArgumentPositions {
  readonly inputs: number;
  readonly targets: number;
  readonly share: number;
  readonly outputGradients: number;
  /** Key and counter of each draw, in turn. */
  readonly draws: number;
}

/** A captured training program. */
export interface TrainProgram {
  readonly layout: FrameLayout;
  readonly positions: ArgumentPositions;
  readonly draws: readonly Draw[];
  readonly F: CallPlan;
  readonly outputCount: number;
  /** Whether F's output after `outputs` is the vector of results. */
  readonly hasResults: boolean;
  /** Without weights to train here, and nobody waiting for gradients, there is no backward. */
  readonly B: CallPlan | undefined;
  readonly BW: FirstAndLater | undefined;
  readonly W: FirstAndLater | undefined;
  /** W over several micro-batches, by their number. */
  readonly batchedW: ReadonlyMap<number, FirstAndLater>;
  /** How many input gradients B answers with. */
  readonly inputGradientCount: number;
  /** Of `layout.saved`, which W still needs after B. */
  readonly savedForW: readonly boolean[];
  /** Positions of the stage's weights whose accumulator must be zero when a step begins. */
  readonly added: readonly number[];
  readonly functions: readonly CapturedFunction[];
  /** With a clock: whose time lies between the stamps that F, B and W answer with. */
  readonly stamps: {
    readonly F: readonly string[];
    readonly B: readonly string[];
    readonly W: readonly string[];
  };
}
