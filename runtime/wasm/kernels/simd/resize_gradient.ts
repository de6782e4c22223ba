/** Gradients of resized images in one pass. @module */
import { tf } from "../../../../deps.ts";
import type { WasmBackend } from "../../backend.ts";
import type { Simd } from "../../simd/simd.ts";
import { register } from "../kernel.ts";
import { linear, nearest } from "../resize_tables.ts";
import { addressOf } from "./address.ts";

/** Registers those of nearest neighbours and of bilinear ones. */
export function registerResizeGradients(simd: Simd): void {
  register(tf.ResizeNearestNeighborGrad, ({ images, dy }, attributes, backend) => {
    const [from, to] = [images!.shape, dy!.shape] as [number[], number[]];
    const tables = [1, 2].map((axis) => nearest(from[axis]!, to[axis]!, attributes));
    return give(simd, backend, images!, dy!, tables, simd.exports.nearestGradient);
  });
  register(tf.ResizeBilinearGrad, ({ images, dy }, attributes, backend) => {
    const [from, to] = [images!.shape, dy!.shape] as [number[], number[]];
    const tables = [1, 2].map((axis) => linear(from[axis]!, to[axis]!, attributes));
    return give(simd, backend, images!, dy!, tables, simd.exports.bilinearGradient);
  });
}

type Gradient = Simd["exports"]["nearestGradient"];

function give(
  simd: Simd,
  backend: WasmBackend,
  images: tf.Tensor,
  dy: tf.Tensor,
  tables: Int32Array[],
  gradient: Gradient,
): tf.TensorInfo {
  const dx = backend.makeOutput(images.shape, "float32");
  backend.typedArrayFromHeap(dx).fill(0);
  const [batch, height, width, channels] = images.shape as [number, number, number, number];
  const [, rows, columns] = dy.shape as [number, number, number];
  const [rowTable, columnTable] = tables as [Int32Array, Int32Array];
  const rowOf = simd.scratch(rowTable.byteLength + columnTable.byteLength);
  const columnOf = rowOf + rowTable.byteLength;
  simd.write(rowOf, rowTable);
  simd.write(columnOf, columnTable);
  const pixel = 4 * channels;
  for (let i = 0; i < batch; i++) {
    const from = addressOf(backend, dy) + i * rows * columns * pixel;
    const to = addressOf(backend, dx) + i * height * width * pixel;
    gradient(from, rows, columns, rowOf, columnOf, to, width, pixel);
  }
  return dx;
}
