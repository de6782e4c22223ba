/** How Stagger's kernels for the backend "wasm" are written: as compositions of the backend's own ops. @module */
import { tf } from "../../../deps.ts";

/** Name of the backend in TensorFlow.js. */
const BACKEND = "wasm";

/** A kernel's attributes. */
// deno-lint-ignore no-explicit-any
type Any = any;

/** Computes a kernel's output; undefined leaves it to the backend's own kernel of that name. */
export type Kernel = (inputs: Record<string, tf.Tensor>, attributes: Any) => tf.Tensor | undefined;

/** Registers a kernel, in the place of the backend's own if there is one. */
export function register(kernelName: string, kernel: Kernel): void {
  const own = tf.getKernel(kernelName, BACKEND);
  if (own) tf.unregisterKernel(kernelName, BACKEND);
  tf.registerKernel({
    kernelName,
    backendName: BACKEND,
    kernelFunc: (params) => {
      const { inputs, attrs } = params;
      const made = tf.engine().tidy(() =>
        kernel(inputs as unknown as Record<string, tf.Tensor>, attrs) as tf.Tensor
      );
      if (made !== undefined) return made;
      if (!own) throw new Error(`Kernel '${kernelName}' not registered for backend '${BACKEND}'`);
      return own.kernelFunc(params);
    },
  });
}
