/** Starts the TensorFlow.js backend "tensorflow". @module */
import util from "node:util";
import { tf } from "../../deps.ts";
import { BACKEND, type NodeBackend } from "./binding/backend.ts";
import { Binding } from "./binding/binding.ts";
import type { Context } from "./binding/context.ts";
import { registerKernels } from "./kernels/register.ts";

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
    throw new Error(`Cannot start engine "tensorflow": TensorFlow.js cannot use its backend "${BACKEND}"`);
  }
  registerKernels();
  return backend;
}
