/** The tensor handles of one micro-batch in flight. @module */
import type { MicroBatch, Value } from "../../../stages/executor.ts";
import type { NodeBackend } from "../binding/backend.ts";
import type { Context } from "../binding/context.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
import type { Argument, GraphTensor } from "../binding/graph_tensor.ts";
import { newHandle } from "../binding/tensor.ts";
import type { InferenceProgram } from "./capture_inference.ts";
import { functionCounters } from "./captured_function.ts";
import { drawHandles } from "./random.ts";
import type { TrainProgram } from "./train_program.ts";

/** Handles that belong to one micro-batch, by place; 0 where there is none. */
export type Frame = [
  /** What the caller handed over, in the order of the layout's arguments. */
  handed: BigUint64Array<ArrayBuffer>,
  /** What F left for the backward. */
  saved: BigUint64Array<ArrayBuffer>,
  /** What B left for W. */
  extra: BigUint64Array<ArrayBuffer>,
];

/** Places in a frame. */
export const HANDED = 0;
export const SAVED = 1;
export const EXTRA = 2;

/** What the handles of a frame stand for. */
export interface FrameLayout {
  readonly arguments: readonly Argument[];
  readonly saved: readonly GraphTensor[];
  readonly extra: readonly GraphTensor[];
}

/** A frame with all that F is given, but for random numbers. */
export function makeFrame(
  context: Context,
  { layout, positions }: TrainProgram | InferenceProgram,
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

/** Writes handles in a row. */
export function setHandles(target: BigUint64Array, first: number, handles: readonly Value[]): void {
  for (let i = 0; i < handles.length; i++) target[first + i] = handles[i] as bigint;
}

/**
 * Frees handles and leaves zeros. The time counts as TensorFlow's: it gives back the memory of what nothing else
 * holds.
 *
 * @param kept which not to free
 */
export function freeHandles(
  { tf }: Context,
  handles: BigUint64Array,
  kept: readonly boolean[] = [],
): void {
  const start = performance.now();
  for (let i = 0; i < handles.length; i++) {
    const handle = handles[i]!;
    if (handle === 0n || kept[i]) continue;
    tf.TFE_DeleteTensorHandle(handle);
    handles[i] = 0n;
  }
  functionCounters.ms += performance.now() - start;
}
