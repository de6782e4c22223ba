/** The TensorFlow.js backend "tensorflow": tfjs-node's kernels over Stagger's binding. @module */
import type { tf } from "../../../deps.ts";
import type { Binding, TensorMetadata } from "./binding.ts";
import type { OpAttribute } from "./attributes.ts";

/** Name of the backend in TensorFlow.js. */
export const BACKEND = "tensorflow";

/** What Stagger uses of tfjs-node's `NodeJSKernelBackend`. */
export interface NodeBackend extends tf.KernelBackend {
  readonly binding: Binding;
  readonly tensorMap: { get(dataId: object): { id: number; values: unknown } };
  getInputTensorIds(tensors: readonly tf.TensorInfo[]): number[];
  createOutputTensor(metadata: TensorMetadata): tf.Tensor;
  executeSingleOutput(
    name: string,
    attributes: readonly OpAttribute[],
    inputs: readonly tf.TensorInfo[],
  ): tf.Tensor;
  executeMultipleOutputs(
    name: string,
    attributes: readonly OpAttribute[],
    inputs: readonly tf.TensorInfo[],
    outputCount: number,
  ): tf.Tensor[];
}

/** The binding's id of a tensor. */
export function idOf(backend: NodeBackend, tensor: tf.TensorInfo): number {
  return backend.getInputTensorIds([tensor])[0]!;
}
