/** `Concat` and `Tile` row by row. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { alias } from "../../backend.ts";
import { addressOf } from "./address.ts";

/** Registers both. */
export function registerConcat(simd: Simd): void {
  registerDirect(tf.Concat, (inputs, attributes, backend) => {
    const all = Object.values(inputs);
    const { dtype, shape } = all[0]!;
    if (all.length < 2 || all.some((t) => t.dtype !== dtype) || dtype === "string") return;
    const axis = tf.util.parseAxisParam(attributes.axis, shape)[0]!;
    const shapes = all.map((t) => t.shape);
    tf.backend_util.assertParamsConsistent(shapes, axis);
    const out = backend.makeOutput(tf.backend_util.computeOutShape(shapes, axis), dtype);
    const rows = tf.util.sizeFromShape(shape.slice(0, axis));
    if (out.shape.includes(0)) return out;
    const bytesOf = ({ shape }: { shape: number[] }) =>
      tf.util.sizeFromShape(shape.slice(axis)) * tf.util.bytesPerElement(dtype);
    const stride = bytesOf(out);
    let to = addressOf(backend, out);
    for (const part of all) {
      const bytes = bytesOf(part);
      simd.exports.copyRows(addressOf(backend, part), bytes, to, stride, bytes, rows);
      to += bytes;
    }
    return out;
  });
  registerDirect(tf.Tile, ({ x }, { reps }, backend) => {
    if (x!.dtype === "string") return;
    let tiled: tf.TensorInfo = x!;
    // From the last axis on: what is copied next is already tiled.
    for (let axis = x!.rank - 1; axis >= 0; axis--) {
      const times: number = reps[axis];
      if (times === 1) continue;
      const shape = tiled.shape.map((dim, i) => i === axis ? dim * times : dim);
      const out = backend.makeOutput(shape, x!.dtype);
      const rows = tf.util.sizeFromShape(shape.slice(0, axis));
      const bytes = tf.util.sizeFromShape(tiled.shape.slice(axis)) * tf.util.bytesPerElement(x!.dtype);
      const from = addressOf(backend, tiled);
      for (let i = 0; i < times; i++) {
        simd.exports.copyRows(from, bytes, addressOf(backend, out) + i * bytes, times * bytes, bytes, rows);
      }
      if (tiled !== x) backend.disposeData(tiled.dataId);
      tiled = out;
    }
    return tiled === x ? alias(backend, x!, x!.shape) : tiled;
  });
}
