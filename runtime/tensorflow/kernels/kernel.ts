/** How Stagger's kernels for the backend "tensorflow" are written. @module */
import { tf } from "../../../deps.ts";
import { ATTR_BOOL, ATTR_INT, ATTR_STRING, type OpAttribute, typeAttr } from "../binding/attributes.ts";
import { BACKEND, type NodeBackend } from "../binding/backend.ts";
import { TF_FLOAT, TF_INT32 } from "../binding/dtypes.ts";

/** A kernel's inputs and attributes. */
// deno-lint-ignore no-explicit-any
type Any = any;

/** Computes a kernel's outputs. */
export type Kernel = (
  backend: NodeBackend,
  inputs: Record<string, tf.Tensor>,
  attributes: Any,
) => tf.Tensor | tf.Tensor[];

/** Registers a kernel, in the place of another of its name if there is one. */
export function register(kernelName: string, kernel: Kernel): void {
  if (tf.getKernel(kernelName, BACKEND)) tf.unregisterKernel(kernelName, BACKEND);
  tf.registerKernel({
    kernelName,
    backendName: BACKEND,
    kernelFunc: ({ inputs, attrs, backend }) => {
      const result = tf.engine().tidy(() =>
        kernel(backend as NodeBackend, inputs as unknown as Record<string, tf.Tensor>, attrs)
      );
      return result;
    },
  });
}

/** Registers a kernel for some inputs; for the others, the one of its name that is registered stays. */
export function registerFor(
  kernelName: string,
  applies: (inputs: Record<string, tf.Tensor>, attributes: Any) => boolean,
  kernel: Kernel,
): void {
  const { kernelFunc: others } = tf.getKernel(kernelName, BACKEND)!;
  register(kernelName, kernel);
  const config = tf.getKernel(kernelName, BACKEND)!;
  const { kernelFunc: some } = config;
  config.kernelFunc = (call) =>
    applies(call.inputs as unknown as Record<string, tf.Tensor>, call.attrs) ? some(call) : others(call);
}

/** Attribute `T: float`. */
export const FLOAT: OpAttribute = typeAttr("T", TF_FLOAT);
/** Attribute `Index: int32`. */
export const INDEX: OpAttribute = typeAttr("Index", TF_INT32);

/** An integer or integer list attribute. */
export function int(name: string, value: number | readonly number[]): OpAttribute {
  return { name, type: ATTR_INT, value };
}

/** A boolean attribute. */
export function bool(name: string, value: boolean): OpAttribute {
  return { name, type: ATTR_BOOL, value };
}

/** A string attribute. */
export function text(name: string, value: string): OpAttribute {
  return { name, type: ATTR_STRING, value };
}

/** A small int32 vector; within a kernel's tidy it need not be disposed. */
export function ints(values: readonly number[]): tf.Tensor {
  return tf.tensor1d(values as number[], "int32");
}
