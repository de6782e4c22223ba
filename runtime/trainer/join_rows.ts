/** Predictions of micro-batches as one tensor. @module */
import { tf } from "../../deps.ts";
import type { Prediction } from "../protocol.ts";

/** One tensor of all micro-batches' rows. */
export function joinRows(parts: readonly Prediction[]): tf.Tensor {
  const { shape, dtype } = parts[0]!;
  const rows = parts.reduce((sum, part) => sum + part.shape[0]!, 0);
  const all = new Uint8Array(parts.reduce((sum, { data }) => sum + data.byteLength, 0));
  let at = 0;
  for (const { data } of parts) {
    all.set(new Uint8Array(data), at);
    at += data.byteLength;
  }
  const values = dtype === "int32"
    ? new Int32Array(all.buffer)
    : dtype === "bool"
    ? all
    : new Float32Array(all.buffer);
  return tf.tensor(values, [rows, ...shape.slice(1)], dtype as "float32");
}
