/** Samples that are made once and kept. @module */
import { setImmediate } from "node:timers/promises";
import { sizeOf } from "../../ring/dtype.ts";
import type { Samples } from "./samples.ts";

/** Milliseconds of reading after which others get their turn on this thread. */
const SLICE = 20;

/**
 * Reads all samples and keeps them, four bytes for each number: for samples that cost more to make than to copy, where
 * training should not wait for them. What is drawn anew in every epoch is kept as the first epoch has it.
 *
 * @example
 * ```ts
 * const samples = await inMemory(await digitMasks({ shape: [64, 64, 3], count: 100 }));
 * console.log(samples.length);
 * ```
 */
export async function inMemory(samples: Samples): Promise<Samples> {
  const { length } = samples;
  const [inputSize, targetSize] = [sizeOf(samples.input.shape), sizeOf(samples.target.shape)];
  const inputs = new Float32Array(length * inputSize);
  const targets = new Float32Array(length * targetSize);
  const rows = (values: Float32Array, size: number, index: number) =>
    values.subarray(index * size, (index + 1) * size);
  let turn = performance.now() + SLICE;
  for (let i = 0; i < length; i++) {
    await samples.read(i, rows(inputs, inputSize, i), rows(targets, targetSize, i));
    if (performance.now() < turn) continue;
    await setImmediate();
    turn = performance.now() + SLICE;
  }
  return {
    ...samples,
    read(index, input, target) {
      if (!(index >= 0 && index < length)) {
        throw new RangeError(`Cannot read sample ${index}: expected 0 to ${length - 1}`);
      }
      input.set(rows(inputs, inputSize, index));
      target.set(rows(targets, targetSize, index));
    },
  };
}
