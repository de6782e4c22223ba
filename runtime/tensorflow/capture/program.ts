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
import type { RunningStatistics } from "../../../stages/context.ts";
import type { MicroBatch, Value } from "../../../stages/executor.ts";
import type { NodeBackend } from "../binding/backend.ts";
import type { Context } from "../binding/context.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
import { newHandle } from "../binding/tensor.ts";
import type { Variable } from "../binding/variable.ts";
import type { CallPlan } from "./call_plan.ts";
import { type Frame, type FrameLayout, HANDED, setHandles } from "./frame.ts";
import type { CapturedFunction } from "./captured_function.ts";
import { type Draw, drawHandles } from "./random.ts";

/** What a program's functions read and write beside their arguments. */
export interface StageVariables {
  /** By position in the stage's weights; undefined for weights that are not trained. */
  readonly accumulators: readonly (Variable | undefined)[];
  /** Packed sums of the statistics of these BatchNorm calls, in the order of the forward. */
  statistics(order: readonly StatisticsCall[]): Variable;
}

/** One call of a BatchNorm layer in a forward. */
export interface StatisticsCall {
  readonly layer: RunningStatistics;
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

/** A captured forward. */
export interface InferenceProgram {
  readonly layout: FrameLayout;
  readonly positions: Pick<ArgumentPositions, "inputs" | "targets" | "share">;
  readonly F: CallPlan;
  /** Outputs before the vector of results, if there is one. */
  readonly outputCount: number;
  readonly hasResults: boolean;
  readonly functions: readonly CapturedFunction[];
}

/** A captured program. */
export type Program = TrainProgram | InferenceProgram;

/** A frame with all that F is given, but for random numbers. */
export function makeFrame(
  context: Context,
  { layout, positions }: Program,
  { size, batchSize }: MicroBatch,
  inputs: readonly Value[],
  targets: readonly Value[],
): Frame {
  const handed = new BigUint64Array(layout.arguments.length);
  setHandles(handed, positions.inputs, inputs);
  setHandles(handed, positions.targets, targets);
  handed[positions.share] = newHandle(context, TF_FLOAT, [], Float32Array.of(size / batchSize));
  return [handed, new BigUint64Array(0), new BigUint64Array(0)];
}

/** Gives a frame the keys and counters that F's random numbers come from. */
export function drawRandom(
  backend: NodeBackend,
  { draws, positions }: TrainProgram,
  frame: Frame,
  { step, firstSample }: MicroBatch,
  seed: number,
): void {
  draws.forEach((draw, i) => {
    const handles = drawHandles(backend, draw, { seed, step, firstSample });
    setHandles(frame[HANDED], positions.draws + 2 * i, handles);
  });
}

/** Frees a program's functions. */
export function disposeProgram({ functions }: Program): void {
  for (const f of functions) f.dispose();
}
