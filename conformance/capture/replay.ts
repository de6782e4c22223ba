/** Recorded kernel calls, run as a captured function. @module */
import { tf } from "../../deps.ts";
import { idOf, type NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import type { Context } from "../../runtime/tensorflow/binding/context.ts";
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
 * Runs calls within one function, whose arguments are the calls' inputs, as a stage's activations are.
 *
 * @returns the outputs of each call
 * @throws {UncapturableError} if one of them cannot be captured
 */
export function runCaptured(backend: NodeBackend, calls: readonly RecordedCall[]): RecordedTensor[][] {
  const { context } = backend.binding;
  const { f, given, counts } = capture(backend, calls);
  const handles = new Map<Source, bigint>();
  for (const [source, { dtype, shape, values }] of given) {
    handles.set(source, newHandle(context, toTf(dtype), shape, values));
  }
  try {
    const results = [...f.call(BigUint64Array.from(f.inputs, ({ source }) => handles.get(source)!))];
    return counts.map((count) => results.splice(0, count).map((handle) => taken(context, handle)));
  } finally {
    for (const handle of handles.values()) context.tf.TFE_DeleteTensorHandle(handle);
    f.dispose();
  }
}

/** A tensor's values; the handle is given up. */
function taken(context: Context, handle: bigint): RecordedTensor {
  try {
    const dtype = fromTf(context.tf.TFE_TensorHandleDataType(handle))!;
    return { dtype, shape: handleShape(context, handle), values: readHandle(context, handle) };
  } finally {
    context.tf.TFE_DeleteTensorHandle(handle);
  }
}

interface Captured {
  readonly f: CapturedFunction;
  /** The values of the arguments. */
  readonly given: ReadonlyMap<Argument, RecordedTensor>;
  /** How many outputs each call has. */
  readonly counts: readonly number[];
}

function capture(backend: NodeBackend, calls: readonly RecordedCall[]): Captured {
  const { binding } = backend;
  const recorder = new GraphRecorder(binding.context, `conformance_${calls[0]!.kernel}`);
  const given = new Map<Argument, RecordedTensor>();
  const e = tf.engine();
  e.startScope("conformance");
  try {
    const outputs = calls.map(({ kernel, attributes, inputs, isList }) => {
      const tensors = [...inputs].map(([name, tensor]) => {
        const source: Argument = { kind: "argument", label: name };
        given.set(source, tensor);
        const metadata = binding.argument(recorder, source, toTf(tensor.dtype), tensor.shape);
        return [name, backend.createOutputTensor(metadata)] as const;
      });
      const taken = isList ? tensors.map(([, tensor]) => tensor) : Object.fromEntries(tensors);
      return binding.record(recorder, () => {
        const made = e.runKernel(kernel, taken as tf.NamedTensorMap, attributes as tf.NamedAttrMap);
        const list = (Array.isArray(made) ? made : [made]) as tf.Tensor[];
        return list.map((tensor) => binding.resolve(idOf(backend, tensor)));
      });
    });
    const f = new CapturedFunction(recorder, outputs.flat());
    return { f, given, counts: outputs.map(({ length }) => length) };
  } catch (error) {
    throw new UncapturableError(error instanceof Error ? error.message : String(error), { cause: error });
  } finally {
    e.endScope();
    recorder.dispose();
    binding.endCapture();
  }
}
