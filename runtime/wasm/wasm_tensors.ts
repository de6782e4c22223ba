/** Tensors of TensorFlow.js on the backend "wasm" and the memory of rings. @module */
import { tf } from "../../deps.ts";
import { byteLengthOf, type DType, sizeOf, type TensorSpec } from "../../ring/dtype.ts";
import type { EngineTensors, Value } from "../../stages/executor.ts";
import type { WasmBackend } from "./backend.ts";

const ARRAYS = { float32: Float32Array, int32: Int32Array, bool: Uint8Array } as const;

/** A `Value` is a `tf.Tensor`. Payloads are copied both ways: the backend has a memory of its own. */
export class WasmTensors implements EngineTensors {
  constructor(readonly backend: WasmBackend) {}

  receive(spec: TensorSpec, payload: Uint8Array<SharedArrayBuffer>): { value: Value; inPlace: boolean } {
    const { dtype, shape } = spec;
    const View = ARRAYS[numeric(dtype)];
    // A payload begins on a multiple of 64 bytes.
    const values = new View(payload.buffer as unknown as ArrayBuffer, payload.byteOffset, sizeOf(shape));
    return { value: tf.tensor(values, shape as number[], numeric(dtype)), inPlace: false };
  }

  specOf(value: Value): TensorSpec {
    const { shape, dtype } = value as tf.Tensor;
    return { shape, dtype: dtype as DType };
  }

  byteLengthOf(value: Value): number {
    return byteLengthOf(this.specOf(value));
  }

  copyTo(value: Value, payload: Uint8Array): void {
    const tensor = value as tf.Tensor;
    numeric(tensor.dtype as DType);
    const { buffer, byteOffset, byteLength } = this.backend.typedArrayFromHeap(tensor);
    payload.set(new Uint8Array(buffer, byteOffset, byteLength));
  }

  free(value: Value): void {
    (value as tf.Tensor).dispose();
  }
}

function numeric(dtype: DType): keyof typeof ARRAYS {
  if (dtype in ARRAYS) return dtype as keyof typeof ARRAYS;
  throw new TypeError(
    `Cannot move a tensor of dtype "${dtype}" on engine "wasm": expected ${Object.keys(ARRAYS).join(", ")}`,
  );
}
