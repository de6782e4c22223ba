/** Copies parts of tensors, run by run of values that lie side by side. @module */
import { tf } from "../../../deps.ts";
import type { WasmBackend } from "../backend.ts";

/** Values from which a run is copied by one call. */
const LONG = 16;

/** Which indices of each axis are taken. */
export interface Part {
  /** The first one. */
  readonly begin: readonly number[];
  /** From one to the next; may be negative. */
  readonly step: readonly number[];
  /** How many. */
  readonly size: readonly number[];
}

/** A part of a tensor as one of its own, of shape `part.size`. */
export function copyPart(backend: WasmBackend, x: tf.TensorInfo, { begin, step, size }: Part): tf.TensorInfo {
  const out = backend.makeOutput(size, x.dtype);
  const [source, target] = [backend.typedArrayFromHeap(x), backend.typedArrayFromHeap(out)];
  if (target.length === 0) return out;
  const width = source.BYTES_PER_ELEMENT;
  const memory = new (source.constructor as typeof Float32Array)(source.buffer as ArrayBuffer);
  const strides = tf.util.sizeFromShape(x.shape) === 0
    ? []
    : x.shape.map((_, axis) => volume(x.shape, axis + 1));
  // The innermost axes that are taken whole make one run, together with a stretch of the axis before them.
  let axes = size.length;
  const whole = (axis: number) => step[axis] === 1 && size[axis] === x.shape[axis];
  while (axes > 0 && whole(axes - 1)) axes--;
  if (axes > 0 && step[axes - 1] === 1) axes--;
  const run = volume(size, axes);
  let to = target.byteOffset / width;
  const copy = (axis: number, from: number) => {
    if (axis < axes) {
      const stride = step[axis]! * strides[axis]!;
      for (let i = 0; i < size[axis]!; i++) copy(axis + 1, from + i * stride);
      return;
    }
    if (run >= LONG) memory.copyWithin(to, from, from + run);
    else for (let i = 0; i < run; i++) memory[to + i] = memory[from + i]!;
    to += run;
  };
  const first = begin.reduce((sum, index, axis) => sum + index * strides[axis]!, 0);
  copy(0, source.byteOffset / width + first);
  return out;
}

/** Elements of the axes from `axis` on. */
function volume(shape: readonly number[], axis: number): number {
  return tf.util.sizeFromShape(shape.slice(axis) as number[]);
}
