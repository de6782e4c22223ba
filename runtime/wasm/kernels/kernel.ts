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

/** Registers a kernel that is made of others, in the place of the backend's own: what comes up on the way is freed. */
export function register(kernelName: string, kernel: Kernel): void {
  put(
    kernelName,
    (inputs, attributes, backend) => tf.engine().tidy(() => kernel(inputs, attributes, backend) as tf.Tensor),
  );
}

/**
 * Registers one for some inputs, which `kernel` answers with a function for: the others, which are most, go on to
 * what is registered already without the cost of a scope.
 */
export function registerFor(
  kernelName: string,
  kernel: (...given: Parameters<Kernel>) => (() => tf.Tensor) | undefined,
): void {
  put(kernelName, (inputs, attributes, backend) => {
    const made = kernel(inputs, attributes, backend);
    return made && tf.engine().tidy(made);
  });
}

/** Registers one that makes nothing but its outputs: a scope costs more than a small tensor does. */
export function registerDirect(kernelName: string, kernel: Kernel): void {
  put(kernelName, kernel);
}

function put(kernelName: string, kernel: Kernel): void {
  const own = tf.getKernel(kernelName, BACKEND);
  if (own) tf.unregisterKernel(kernelName, BACKEND);
  tf.registerKernel({
    kernelName,
    backendName: BACKEND,
    setupFunc: own?.setupFunc,
    kernelFunc: (params) => {
      const inputs = params.inputs as unknown as Record<string, tf.Tensor>;
      const outputs = kernel(inputs, params.attrs, params.backend as WasmBackend);
      if (outputs !== undefined) return outputs;
      if (!own) throw new Error(`Kernel '${kernelName}' not registered for backend '${BACKEND}'`);
      return own.kernelFunc(params);
    },
  });
}
