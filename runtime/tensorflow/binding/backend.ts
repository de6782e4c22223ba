/** The TensorFlow.js backend "tensorflow": tfjs-node's kernels over Stagger's binding. @module */
import util from "node:util";
import { tf } from "../../../deps.ts";
import { Binding, type TensorMetadata } from "./binding.ts";
import type { Context } from "./context.ts";
import type { OpAttribute } from "./attributes.ts";
import { registerKernels } from "../kernels/register.ts";

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

/**
 * Makes "tensorflow" the backend of this worker's TensorFlow.js.
 *
 * @throws {Error} if TensorFlow.js does not take it: it would go on with another one, silently
 */
export async function startBackend(context: Context): Promise<NodeBackend> {
  // tfjs-node's kernels call a helper that newer runtimes have dropped.
  const legacy = util as { isNullOrUndefined?: (value: unknown) => boolean };
  legacy.isNullOrUndefined ??= (value) => value === null || value === undefined;
  const { NodeJSKernelBackend } = await import(
    "npm:@tensorflow/tfjs-node-gpu@4.22.0/dist/nodejs_kernel_backend.js"
  );
  await import("npm:@tensorflow/tfjs-node-gpu@4.22.0/dist/register_all_kernels.js");
  const backend = new NodeJSKernelBackend(
    new Binding(context) as never,
    "@stagger/stagger",
  ) as unknown as NodeBackend;
  tf.registerBackend(BACKEND, () => backend);
  if (!await tf.setBackend(BACKEND) || tf.getBackend() !== BACKEND) {
    throw new Error(`Cannot start backend "${BACKEND}": TensorFlow.js went on with "${tf.getBackend()}"`);
  }
  registerKernels();
  return backend;
}

/** The binding's id of a tensor. */
export function idOf(backend: NodeBackend, tensor: tf.TensorInfo): number {
  return backend.getInputTensorIds([tensor])[0]!;
}
