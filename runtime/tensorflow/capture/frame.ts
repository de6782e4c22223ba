/** The tensor handles of one micro-batch in flight. @module */
import type { Value } from "../../../stages/executor.ts";
import type { Context } from "../binding/context.ts";
import type { Argument, GraphTensor } from "../binding/graph_tensor.ts";
import { functionCounters } from "./captured_function.ts";

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
