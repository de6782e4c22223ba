/** Tensors between JavaScript's memory and TensorFlow's. A handle is a `TFE_TensorHandle*`. @module */
import { type DType, DTYPES, sizeOf, type TensorSpec } from "../../../ring/dtype.ts";
import { typeAttr } from "./attributes.ts";
import type { Context } from "./context.ts";
import {
  TF_BYTES,
  TF_COMPLEX64,
  TF_FLOAT,
  TF_INT32,
  TF_INT64,
  TF_STRING,
  TF_UINT64,
  toTf,
  TSTRING_BYTES,
} from "./dtypes.ts";
import { execute } from "./eager.ts";

/** What TensorFlow.js hands over as a tensor's values; strings as their bytes. */
export type HostValues = Float32Array | Int32Array | Uint8Array | BigUint64Array | readonly Uint8Array[];

type Typed = Exclude<HostValues, readonly Uint8Array[]>;

/** Copies values into a new `TF_Tensor`. The caller owns it. */
export function newTensor(
  context: Context,
  dtype: number,
  shape: readonly number[],
  values: HostValues,
): bigint {
  const { tf, c } = context;
  const bytes = sizeOf(shape) * (TF_BYTES[dtype] ?? 0);
  const tensor = tf.TF_AllocateTensor(dtype, BigInt64Array.from(shape, BigInt), shape.length, BigInt(bytes));
  const data = tf.TF_TensorData(tensor);
  if (dtype === TF_STRING) {
    (values as readonly Uint8Array[]).forEach((text, i) => {
      const at = data + BigInt(i * TSTRING_BYTES);
      tf.TF_StringInit(at);
      tf.TF_StringCopy(at, text as Uint8Array<ArrayBuffer>, BigInt(text.length));
    });
  } else if (bytes > 0) {
    const source = inTensorflowsFormat(dtype, values as Typed);
    if (source.byteLength !== bytes) {
      tf.TF_DeleteTensor(tensor);
      throw new RangeError(
        `Cannot fill a tensor of ${bytes} bytes [${shape}] with ${source.byteLength} bytes`,
      );
    }
    c.memcpyIn(data, source as Uint8Array<ArrayBuffer>, BigInt(bytes));
  }
  return tensor;
}

/** Copies values into a new tensor on the host. The caller owns the handle. */
export function newHandle(
  context: Context,
  dtype: number,
  shape: readonly number[],
  values: HostValues,
): bigint {
  const tensor = newTensor(context, dtype, shape, values);
  return dtype === TF_STRING ? ownStrings(context, tensor) : toHandle(context, tensor);
}

/**
 * Makes a handle of a tensor of strings and gives that up. Deleting a `TF_Tensor` frees its long strings only if
 * nothing else holds it by then: the handle is one of a copy.
 */
function ownStrings(context: Context, tensor: bigint): bigint {
  const { tf, status } = context;
  const given = tf.TFE_NewTensorHandle(tensor, status);
  context.check("Make a tensor");
  try {
    return execute(context, "DeepCopy", [typeAttr("T", TF_STRING)], [given], 1)[0]!;
  } finally {
    tf.TFE_DeleteTensorHandle(given);
    tf.TF_DeleteTensor(tensor);
  }
}

/** A new tensor from memory in TensorFlow's own format, copied. The caller owns the handle. */
export function handleFromBytes(
  context: Context,
  dtype: number,
  shape: readonly number[],
  bytes: Uint8Array,
): bigint {
  const { tf, c } = context;
  const dims = BigInt64Array.from(shape, BigInt);
  const tensor = tf.TF_AllocateTensor(dtype, dims, shape.length, BigInt(bytes.length));
  if (bytes.length > 0) {
    c.memcpyIn(tf.TF_TensorData(tensor), bytes as Uint8Array<ArrayBuffer>, BigInt(bytes.length));
  }
  return toHandle(context, tensor);
}

/**
 * A tensor over memory that stays the caller's, without a copy: it must not be written to until TensorFlow has
 * let go of every tensor that may share it.
 */
export function wrapMemory(
  context: Context,
  spec: TensorSpec,
  memory: Uint8Array<SharedArrayBuffer>,
): bigint {
  const { tf, noop } = context;
  const dims = BigInt64Array.from(spec.shape, BigInt);
  const data = memory as unknown as Uint8Array<ArrayBuffer>;
  const bytes = BigInt(memory.byteLength);
  return toHandle(context, tf.TF_NewTensor(toTf(spec.dtype), dims, dims.length, data, bytes, noop, 0n));
}

/** Makes a handle of a `TF_Tensor` and gives that up. */
function toHandle(context: Context, tensor: bigint): bigint {
  const handle = context.tf.TFE_NewTensorHandle(tensor, context.status);
  context.tf.TF_DeleteTensor(tensor);
  context.check("Make a tensor");
  return handle;
}

/** Copies a tensor's bytes into `target`; from a GPU too. Not for strings. */
export function copyOut(context: Context, handle: bigint, target: Uint8Array): void {
  const { tf, c } = context;
  const tensor = resolve(context, handle);
  const bytes = tf.TF_TensorByteSize(tensor);
  if (Number(bytes) !== target.byteLength) {
    tf.TF_DeleteTensor(tensor);
    throw new RangeError(`Cannot copy a tensor of ${bytes} bytes to ${target.byteLength} bytes`);
  }
  if (bytes > 0n) c.memcpyOut(target as Uint8Array<ArrayBuffer>, tf.TF_TensorData(tensor), bytes);
  tf.TF_DeleteTensor(tensor);
}

/** A tensor's floats where they lie, to be read until `close`; of a tensor on a GPU, copied. */
export function openFloats(
  context: Context,
  handle: bigint,
  length: number,
): { values: Float32Array; close(): void } {
  const { tf } = context;
  if (length === 0) return { values: new Float32Array(0), close: () => {} };
  const tensor = resolve(context, handle);
  const pointer = Deno.UnsafePointer.create(tf.TF_TensorData(tensor));
  const values = new Float32Array(Deno.UnsafePointerView.getArrayBuffer(pointer!, 4 * length));
  return { values, close: () => tf.TF_DeleteTensor(tensor) };
}

/** A tensor's values, copied, as TensorFlow.js wants them: complex numbers interleaved, strings as bytes. */
export function readHandle(context: Context, handle: bigint): Exclude<HostValues, BigUint64Array> {
  const { tf, c } = context;
  const dtype = tf.TFE_TensorHandleDataType(handle);
  const tensor = resolve(context, handle);
  try {
    if (dtype === TF_STRING) {
      const data = tf.TF_TensorData(tensor);
      return Array.from({ length: Number(tf.TF_TensorElementCount(tensor)) }, (_, i) => {
        const at = data + BigInt(i * TSTRING_BYTES);
        const bytes = new Uint8Array(Number(tf.TF_StringGetSize(at)));
        const source = tf.TF_StringGetDataPointer(at);
        if (bytes.length > 0) Deno.UnsafePointerView.copyInto(source!, bytes);
        return bytes;
      });
    }
    const bytes = tf.TF_TensorByteSize(tensor);
    const buffer = new Uint8Array(Number(bytes));
    if (bytes > 0n) c.memcpyOut(buffer, tf.TF_TensorData(tensor), bytes);
    if (dtype === TF_FLOAT || dtype === TF_COMPLEX64) return new Float32Array(buffer.buffer);
    if (dtype === TF_INT32) return new Int32Array(buffer.buffer);
    if (dtype === TF_INT64) return Int32Array.from(new BigInt64Array(buffer.buffer), Number);
    return buffer;
  } finally {
    tf.TF_DeleteTensor(tensor);
  }
}

/** The values of a float64 tensor, copied. */
export function readDoubles(context: Context, handle: bigint): Float64Array {
  const values = new Float64Array(sizeOf(handleShape(context, handle)));
  copyOut(context, handle, new Uint8Array(values.buffer));
  return values;
}

/** Shape of a tensor. */
export function handleShape(context: Context, handle: bigint): number[] {
  const { tf, status } = context;
  const rank = tf.TFE_TensorHandleNumDims(handle, status);
  const shape = new Array<number>(rank);
  for (let i = 0; i < rank; i++) shape[i] = Number(tf.TFE_TensorHandleDim(handle, i, status));
  return shape;
}

function resolve(context: Context, handle: bigint): bigint {
  const tensor = context.tf.TFE_TensorHandleResolve(handle, context.status);
  context.check("Read a tensor");
  return tensor;
}

/** TensorFlow.js may hand over values in another array type than the dtype's. */
function inTensorflowsFormat(dtype: number, values: Typed): Typed {
  switch (dtype) {
    case TF_FLOAT:
    case TF_COMPLEX64:
      return values instanceof Float32Array ? values : Float32Array.from(values as Int32Array);
    case TF_INT32:
      return values instanceof Int32Array ? values : Int32Array.from(values as Float32Array);
    case TF_INT64: // tfjs-node gives pairs of 32-bit halves, low one first
      return values;
    case TF_UINT64:
      return values;
    default:
      return values instanceof Uint8Array ? values : Uint8Array.from(values as Int32Array);
  }
}

/** The TensorFlow.js dtype of a `TF_DataType`, if it has one. */
export function fromTf(dtype: number): DType | undefined {
  return DTYPES.find((name) => toTf(name) === dtype);
}
