/** Ops of TensorFlow run through the binding: eagerly, and as a function. @module */
import assert from "node:assert/strict";
import type { OpAttribute } from "../../runtime/tensorflow/binding/attributes.ts";
import { CapturedFunction } from "../../runtime/tensorflow/capture/captured_function.ts";
import { GraphRecorder } from "../../runtime/tensorflow/binding/graph_recorder.ts";
import { handleShape, type HostValues, readHandle } from "../../runtime/tensorflow/binding/tensor.ts";
import { engine } from "./engine.ts";

/** A tensor as an op takes it. */
export type Given = [dtype: number, shape: number[], values: HostValues];

/** A tensor as an op gives it; strings as text where they were decoded. */
export interface Made {
  readonly dtype: number;
  readonly shape: number[];
  readonly values: unknown[];
}

/** Runs an op of TensorFlow on tensors given by dtype, shape and values. */
export function run(
  op: string,
  attributes: OpAttribute[],
  inputs: Given[],
  outputs = 1,
): Made[] {
  const { binding } = engine;
  const ids = inputs.map(([dtype, shape, values]) => binding.createTensor(shape, dtype, values));
  try {
    return binding.executeOp(op, attributes, ids, outputs).map(({ id, dtype, shape }) => {
      const values = [...binding.tensorDataSync(id)];
      binding.deleteTensor(id);
      return { dtype, shape, values };
    });
  } finally {
    // 64-bit integers are made for one op, which frees them.
    ids.forEach((id, i) => inputs[i]![0] === binding.TF_INT64 || binding.deleteTensor(id));
  }
}

/** Strings as text. */
export function decode(values: unknown[]): unknown[] {
  return values.map((value) => value instanceof Uint8Array ? new TextDecoder().decode(value) : value);
}

/** As `run`, as a function that takes nothing. */
export function captured(
  op: string,
  attributes: OpAttribute[],
  inputs: Given[],
  outputs: number,
): Made[] {
  const { binding, context } = engine;
  const recorder = new GraphRecorder(context, "captured");
  const ids = inputs.map(([dtype, shape, values]) => binding.createTensor(shape, dtype, values));
  const made = binding.record(recorder, () => binding.executeOp(op, attributes, ids, outputs));
  const f = new CapturedFunction(recorder, made.map(({ id }) => binding.graphTensor(id)));
  recorder.dispose();
  binding.endCapture();
  for (const id of [...ids, ...made.map(({ id }) => id)]) binding.deleteTensor(id);
  const handles = f.call(new BigUint64Array(0));
  f.dispose();
  return Array.from(handles, (handle, i) => {
    const values = decode([...readHandle(context, handle)]);
    assert.deepEqual(made[i]!.shape, handleShape(context, handle), "shape told while recording");
    assert.equal(made[i]!.dtype, context.tf.TFE_TensorHandleDataType(handle), "dtype told while recording");
    context.tf.TFE_DeleteTensorHandle(handle);
    return { dtype: made[i]!.dtype, shape: made[i]!.shape, values };
  });
}
