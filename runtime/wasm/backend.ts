/** The TensorFlow.js backend "wasm", as Stagger sees it. @module */
import type { tf } from "../../deps.ts";

/** Name of the backend in TensorFlow.js. */
export const BACKEND = "wasm";

/** What Stagger uses of tfjs's `BackendWasm`. */
export interface WasmBackend extends tf.KernelBackend {
  readonly wasm: {
    /** Room for `bytes` in the backend's memory. */
    _malloc(bytes: number): number;
    /** Gives it back. */
    _free(address: number): void;
    /** Its memory. */
    readonly HEAPU8: Uint8Array;
    /** What the module exports. */
    readonly asm: { readonly memory: WebAssembly.Memory };
  };
  /** A tensor's values in the backend's memory: no copy, and stale once the backend allocates. */
  typedArrayFromHeap(tensor: tf.TensorInfo): Float32Array | Int32Array | Uint8Array;
  /** Where its values lie, in bytes. */
  getMemoryOffset(dataId: tf.DataId): number;
  /** A tensor whose values are still to be written. */
  makeOutput(shape: readonly number[], dtype: tf.DataType): tf.TensorInfo;
}

/** A tensor of the same values, which the two share: tensors never change. */
export function alias(
  backend: WasmBackend,
  { dataId, dtype }: tf.TensorInfo,
  shape: number[],
): tf.TensorInfo {
  backend.incRef(dataId);
  return { dataId, dtype, shape };
}
