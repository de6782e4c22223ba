/** The random source of stages on the engine "wasm": it draws what the engine "tensorflow" draws. @module */
import { tf } from "../../deps.ts";
import { sizeOf } from "../../ring/dtype.ts";
import type { RandomSource } from "../../stages/context.ts";
import {
  blocksPerSample,
  philoxUniform,
  type RandomPosition,
  streamCounter,
  streamKey,
} from "../../stages/random.ts";

/** Numbers that one counter value gives. */
const LANES = 4;

/** Draws for one forward. */
export function wasmSource(position: Pick<RandomPosition, "seed" | "step" | "firstSample">): RandomSource {
  const calls = new Map<string, number>();
  return {
    uniform(layer, shape, shared = false) {
      const call = calls.get(layer) ?? 0;
      calls.set(layer, call + 1);
      const at: RandomPosition = { ...position, layer, call, ...(shared ? { firstSample: 0 } : {}) };
      const [samples, elements] = [shape[0]!, sizeOf(shape.slice(1))];
      const blocks = blocksPerSample(elements);
      const row = blocks * LANES;
      const numbers = philoxUniform(streamKey(at), streamCounter(blocks, at), samples * row);
      if (row === elements) return tf.tensor(numbers, shape, "float32");
      // Each sample begins on a counter of its own: the rest of its last block is left out.
      const values = new Float32Array(samples * elements);
      for (let i = 0; i < samples; i++) {
        values.set(numbers.subarray(i * row, i * row + elements), i * elements);
      }
      return tf.tensor(values, shape, "float32");
    },
  };
}
