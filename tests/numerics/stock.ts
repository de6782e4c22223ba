/**
 * TensorFlow.js as it comes: its own backend `cpu` and its own gradients. To be imported before what registers
 * others.
 * @module
 */
import { tf } from "../../deps.ts";
import { engine } from "../../stages/tfjs.ts";

/** All gradients that are registered, by kernel; TensorFlow.js has no function for it. */
export function gradients(): Map<string, unknown> {
  const { _tfGlobals } = globalThis as unknown as { _tfGlobals: Map<string, Map<string, unknown>> };
  return _tfGlobals.get("gradRegistry")!;
}

const stock = new Map(gradients());
if (stock.has("StaggerBatchNorm")) throw new Error("Import stock.ts before what registers gradients");

/** Runs `body` on TensorFlow.js as it comes. */
export async function onStock<T>(body: () => T | Promise<T>): Promise<T> {
  const ours = new Map(gradients());
  const backend = tf.getBackend();
  await tf.setBackend("cpu");
  replace(stock);
  const { activeTape, gradientDepth, kernelDepth } = engine().state;
  try {
    return await body();
  } finally {
    replace(ours);
    Object.assign(engine().state, { activeTape, gradientDepth, kernelDepth }); // left as they are by what fails
    await tf.setBackend(backend);
  }
}

function replace(by: Map<string, unknown>): void {
  gradients().clear();
  for (const [name, gradient] of by) gradients().set(name, gradient);
}
