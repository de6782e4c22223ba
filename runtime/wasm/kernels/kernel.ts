/** How Stagger's kernels for the backend "wasm" are written: most are compositions of its own. @module */
import { tf } from "../../../deps.ts";
import { BACKEND, type WasmBackend } from "../backend.ts";

/** A kernel's attributes. */
// deno-lint-ignore no-explicit-any
type Any = any;

type Outputs = tf.TensorInfo | tf.TensorInfo[];

/** Computes a kernel's outputs; undefined leaves it to the backend's own kernel of that name. */
export type Kernel = (
  inputs: Record<string, tf.Tensor>,
  attributes: Any,
  backend: WasmBackend,
) => Outputs | undefined;

/** Registers a kernel, in the place of the backend's own if there is one. */
export function register(kernelName: string, kernel: Kernel): void {
  const own = tf.getKernel(kernelName, BACKEND);
  if (own) tf.unregisterKernel(kernelName, BACKEND);
  tf.registerKernel({
    kernelName,
    backendName: BACKEND,
    setupFunc: own?.setupFunc,
    kernelFunc: (params) => {
      const inputs = params.inputs as unknown as Record<string, tf.Tensor>;
      const outputs = tf.engine().tidy(() =>
        kernel(inputs, params.attrs, params.backend as WasmBackend) as tf.Tensor
      );
      if (outputs !== undefined) return outputs;
      if (!own) throw new Error(`Kernel '${kernelName}' not registered for backend '${BACKEND}'`);
      return own.kernelFunc(params);
    },
  });
}
