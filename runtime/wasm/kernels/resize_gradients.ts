/**
 * Gradients of resizing with half-pixel centers, which the backend's own take for those without: the transposes
 * of the two matrices, one along each axis, that resizing is.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Which pixels make one of the resized image, and by how much. */
type Sources = (center: number, size: number) => [pixel: number, weight: number][];

/** Registers both. */
export function registerResizeGradients(): void {
  registerGradient(tf.ResizeBilinearGrad, (center, size) => {
    const at = center - 0.5;
    const weight = at - Math.floor(at);
    const inside = (pixel: number) => Math.min(Math.max(pixel, 0), size - 1);
    return [[inside(Math.floor(at)), 1 - weight], [inside(Math.floor(at) + 1), weight]];
  });
  registerGradient(tf.ResizeNearestNeighborGrad, (center, size) => [
    [Math.min(Math.floor(center), size - 1), 1],
  ]);
}

function registerGradient(kernelName: string, sources: Sources): void {
  register(kernelName, ({ dy, images }, { halfPixelCenters }) => {
    if (!halfPixelCenters) return;
    const [batch, height, width, channels] = images!.shape as [number, number, number, number];
    const [, fromHeight, fromWidth] = dy!.shape as [number, number, number, number];
    const rows = transposed(height, fromHeight, sources);
    const columns = transposed(width, fromWidth, sources);
    const wide = tf.matMul(rows, tf.reshape(dy!, [batch, fromHeight, fromWidth * channels]));
    const each = tf.reshape(wide, [batch * height, fromWidth, channels]);
    return tf.reshape(tf.matMul(columns, each), images!.shape);
  });
}

/** The matrix that takes gradients of `from` resized pixels to those of `size`, `[size, from]`. */
function transposed(size: number, from: number, sources: Sources): tf.Tensor2D {
  const matrix = new Float32Array(size * from);
  for (let i = 0; i < from; i++) {
    for (const [pixel, weight] of sources((i + 0.5) * size / from, size)) matrix[pixel * from + i]! += weight;
  }
  return tf.tensor2d(matrix, [size, from]);
}
