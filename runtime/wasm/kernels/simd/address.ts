/** Where a tensor's values lie. @module */
import type { tf } from "../../../../deps.ts";
import type { WasmBackend } from "../../backend.ts";

/** In bytes, from the beginning of the backend's memory. */
export function addressOf(backend: WasmBackend, { dataId }: tf.TensorInfo): number {
  return backend.getMemoryOffset(dataId);
}
