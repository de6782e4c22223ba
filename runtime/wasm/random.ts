/** The random source of stages on the engine "wasm": it draws what the engine "tensorflow" draws. @module */
import type { tf } from "../../deps.ts";
import { sizeOf } from "../../ring/dtype.ts";
import type { RandomSource } from "../../stages/context.ts";
import { engine } from "../../stages/tfjs.ts";
import { addressOf } from "./kernels/simd/address.ts";
import type { StartedBackend } from "./start_backend.ts";
import {
  blocksPerSample,
  philoxUniform,
  type RandomPosition,
  streamCounter,
  streamKey,
} from "../../stages/random.ts";

type Started = Pick<StartedBackend, "backend" | "kernels">;

/** Draws for one forward. */
export function wasmSource(
  started: Started,
  position: Pick<RandomPosition, "seed" | "step" | "firstSample">,
): RandomSource {
  const calls = new Map<string, number>();
  return {
    uniform(layer, shape, shared = false) {
      const call = calls.get(layer) ?? 0;
      calls.set(layer, call + 1);
      const at: RandomPosition = { ...position, layer, call, ...(shared ? { firstSample: 0 } : {}) };
      const [samples, elements] = [shape[0]!, sizeOf(shape.slice(1))];
      const blocks = blocksPerSample(elements);
      const [key, [low, high]] = [streamKey(at), streamCounter(blocks, at)];
      const numbers = started.backend.makeOutput(shape, "float32");
      // Each sample begins on a counter of its own: the rest of its last block is left out.
      for (let i = 0; i < samples; i++) {
        const from = low + BigInt(i * blocks);
        const counter = [BigInt.asUintN(64, from), high + (from >> 64n)] as const;
        draw(started, key, counter, numbers, i * elements, elements);
      }
      return engine().makeTensorFromTensorInfo(numbers);
    },
  };
}

/** Draws `count` numbers into `to`, from its value `first` on. */
function draw(
  { backend, kernels }: Started,
  key: bigint,
  counter: readonly [bigint, bigint],
  to: tf.TensorInfo,
  first: number,
  count: number,
): void {
  if (kernels) kernels.exports.philoxUniform(addressOf(backend, to) + 4 * first, count, key, ...counter);
  else backend.typedArrayFromHeap(to).set(philoxUniform(key, counter, count), first);
}
