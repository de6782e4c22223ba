/** A recorded kernel call, run as a captured function. @module */
import { tf } from "../../deps.ts";
import { idOf, type NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import { toTf } from "../../runtime/tensorflow/binding/dtypes.ts";
import { GraphRecorder } from "../../runtime/tensorflow/binding/graph_recorder.ts";
import type { Argument, Source } from "../../runtime/tensorflow/binding/graph_tensor.ts";
import { fromTf, handleShape, newHandle, readHandle } from "../../runtime/tensorflow/binding/tensor.ts";
import { CapturedFunction } from "../../runtime/tensorflow/capture/captured_function.ts";
import type { RecordedCall, RecordedTensor } from "./recorder.ts";

/** Thrown when a call cannot be captured, with the reason. */
export class UncapturableError extends Error {
  override readonly name = "UncapturableError";
}

/**
 * Runs a kernel as a function whose arguments are the call's inputs, as a stage's activations are.
 *
 * @returns the outputs
 * @throws {UncapturableError} if the kernel cannot be captured
 */
export function runCaptured(backend: NodeBackend, call: RecordedCall): RecordedTensor[] {
  const { context } = backend.binding;
  const { f, given } = capture(backend, call);
  const handles = new Map<Source, bigint>();
  for (const [source, { dtype, shape, values }] of given) {
    handles.set(source, newHandle(context, toTf(dtype), shape, values));
  }
  try {
    const results = f.call(BigUint64Array.from(f.inputs, ({ source }) => handles.get(source)!));
    return Array.from(results, (handle) => {
      try {
        const dtype = fromTf(context.tf.TFE_TensorHandleDataType(handle))!;
        return { dtype, shape: handleShape(context, handle), values: readHandle(context, handle) };
      } finally {
        context.tf.TFE_DeleteTensorHandle(handle);
      }
    });
  } finally {
    for (const handle of handles.values()) context.tf.TFE_DeleteTensorHandle(handle);
    f.dispose();
  }
}

function capture(
  backend: NodeBackend,
  { kernel, attributes, inputs, isList }: RecordedCall,
): { f: CapturedFunction; given: Map<Argument, RecordedTensor> } {
  const { binding } = backend;
  const recorder = new GraphRecorder(binding.context, `conformance_${kernel}`);
  const given = new Map<Argument, RecordedTensor>();
  const e = tf.engine();
  e.startScope("conformance");
  try {
    const tensors = [...inputs].map(([name, tensor]) => {
      const source: Argument = { kind: "argument", label: name };
      given.set(source, tensor);
      const metadata = binding.argument(recorder, source, toTf(tensor.dtype), tensor.shape);
      return [name, backend.createOutputTensor(metadata)] as const;
    });
    const taken = isList ? tensors.map(([, tensor]) => tensor) : Object.fromEntries(tensors);
    const outputs = binding.record(recorder, () => {
      const made = e.runKernel(kernel, taken as tf.NamedTensorMap, attributes as tf.NamedAttrMap);
      const list = (Array.isArray(made) ? made : [made]) as tf.Tensor[];
      return list.map((tensor) => binding.resolve(idOf(backend, tensor)));
    });
    return { f: new CapturedFunction(recorder, outputs), given };
  } catch (error) {
    throw new UncapturableError(error instanceof Error ? error.message : String(error), { cause: error });
  } finally {
    e.endScope();
    recorder.dispose();
    binding.endCapture();
  }
}
