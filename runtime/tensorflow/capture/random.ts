/** The random source of stages on the engine "tensorflow": its stateless op, with key and counter as inputs. @module */
import { tf } from "../../../deps.ts";
import { sizeOf } from "../../../ring/dtype.ts";
import type { RandomSource } from "../../../stages/context.ts";
import { blocksPerSample, type RandomPosition, streamCounter, streamKey } from "../../../stages/random.ts";
import { typeAttr } from "../binding/attributes.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { TF_FLOAT, TF_INT32, TF_UINT64 } from "../binding/dtypes.ts";
import { execute } from "../binding/eager.ts";
import type { GraphRecorder } from "../binding/graph_recorder.ts";
import type { Argument } from "../binding/graph_tensor.ts";
import { newHandle, newTensor } from "../binding/tensor.ts";

const PHILOX = 1; // tensorflow/core/framework/rng_alg.h
const ATTRIBUTES = [typeAttr("dtype", TF_FLOAT), typeAttr("Tshape", TF_INT32)];

/** One draw of a captured forward: which key and counter its arguments want. */
export interface Draw {
  readonly layer: string;
  readonly call: number;
  readonly blocks: number;
  readonly shared: boolean;
  readonly key: Argument;
  readonly counter: Argument;
}

/** Key and counter of a draw as handles, the caller's to delete. */
export function drawHandles(
  backend: NodeBackend,
  draw: Pick<Draw, "layer" | "call" | "blocks" | "shared">,
  position: { seed: number; step: number; firstSample: number },
): [key: bigint, counter: bigint] {
  const { context } = backend.binding;
  const at: RandomPosition = { ...position, layer: draw.layer, call: draw.call };
  const counter = streamCounter(draw.blocks, draw.shared ? { ...at, firstSample: 0 } : at);
  return [
    newHandle(context, TF_UINT64, [1], BigUint64Array.of(streamKey(at))),
    newHandle(context, TF_UINT64, [2], BigUint64Array.from(counter)),
  ];
}

/** Records draws, whose keys and counters become arguments. */
export function recordingSource(backend: NodeBackend, recorder: GraphRecorder, draws: Draw[]): RandomSource {
  const { binding } = backend;
  const constants: bigint[] = [];
  const constant = (shape: number[], values: Int32Array) => {
    const tensor = newTensor(binding.context, TF_INT32, shape, values);
    constants.push(tensor);
    return recorder.constant(tensor, TF_INT32);
  };
  return {
    uniform(layer, shape, shared = false) {
      const call = draws.filter((draw) => draw.layer === layer).length;
      const blocks = blocksPerSample(sizeOf(shape.slice(1)));
      const key: Argument = { kind: "argument", label: `random key of ${layer}` };
      const counter: Argument = { kind: "argument", label: `random counter of ${layer}` };
      draws.push({ layer, call, blocks, shared, key, counter });
      const rows = [shape[0]!, blocks * 4];
      const [numbers] = recorder.op("StatelessRandomUniformV2", ATTRIBUTES, [
        constant([2], Int32Array.from(rows)),
        recorder.input(key, TF_UINT64, [1]),
        recorder.input(counter, TF_UINT64, [2]),
        constant([], Int32Array.of(PHILOX)),
      ], 1);
      for (const tensor of constants.splice(0)) binding.context.tf.TF_DeleteTensor(tensor);
      return rowsOf(backend.createOutputTensor(binding.adopt(numbers!)), shape);
    },
  };
}

/** Draws at once. */
export function eagerSource(
  backend: NodeBackend,
  position: { seed: number; step: number; firstSample: number },
): RandomSource {
  const { binding } = backend;
  const { context } = binding;
  const calls = new Map<string, number>();
  return {
    uniform(layer, shape, shared = false) {
      const call = calls.get(layer) ?? 0;
      calls.set(layer, call + 1);
      const blocks = blocksPerSample(sizeOf(shape.slice(1)));
      const [key, counter] = drawHandles(backend, { layer, call, blocks, shared }, position);
      const inputs = [
        newHandle(context, TF_INT32, [2], Int32Array.of(shape[0]!, blocks * 4)),
        key,
        counter,
        newHandle(context, TF_INT32, [], Int32Array.of(PHILOX)),
      ];
      const [numbers] = execute(context, "StatelessRandomUniformV2", ATTRIBUTES, inputs, 1);
      for (const handle of inputs) context.tf.TFE_DeleteTensorHandle(handle);
      return rowsOf(backend.createOutputTensor(binding.adoptHandle(numbers!)), shape);
    },
  };
}

/** Cuts each sample's row to its elements. */
function rowsOf(numbers: tf.Tensor, shape: number[]): tf.Tensor {
  return tf.tidy(() => tf.reshape(tf.slice(numbers, [0, 0], [shape[0]!, sizeOf(shape.slice(1))]), shape));
}
