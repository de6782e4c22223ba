/** Gradients of resized images: each pixel's goes back to the pixels that it was made of. @module */
import { add } from "./rows";

/**
 * Nearest neighbours: adds `dy` `[rows, columns, channels]` to `dx`, an image of `width` pixels a row.
 *
 * @param rowOf for each row of `dy`, the row of `dx`; and so `columnOf`
 * @param pixel bytes of a pixel
 */
export function nearestGradient(
  dy: usize,
  rows: i32,
  columns: i32,
  rowOf: usize,
  columnOf: usize,
  dx: usize,
  width: i32,
  pixel: usize,
): void {
  for (let row = 0; row < rows; row++) {
    const line = dx + <usize> (load<i32>(rowOf + (<usize> row << 2)) * width) * pixel;
    for (let column = 0; column < columns; column++) {
      add(dy, line + <usize> load<i32>(columnOf + (<usize> column << 2)) * pixel, pixel);
      dy += pixel;
    }
  }
}

/**
 * Bilinear: the same with two rows and two columns each.
 *
 * @param rowOf for each row of `dy`: the upper row of `dx`, the lower one, and the lower one's weight
 */
export function bilinearGradient(
  dy: usize,
  rows: i32,
  columns: i32,
  rowOf: usize,
  columnOf: usize,
  dx: usize,
  width: i32,
  pixel: usize,
): void {
  for (let row = 0; row < rows; row++) {
    const entry = rowOf + <usize> (12 * row);
    const upper = dx + <usize> (load<i32>(entry) * width) * pixel;
    const lower = dx + <usize> (load<i32>(entry, 4) * width) * pixel;
    const down = load<f32>(entry, 8);
    for (let column = 0; column < columns; column++) {
      const entry = columnOf + <usize> (12 * column);
      const left = <usize> load<i32>(entry) * pixel, right = <usize> load<i32>(entry, 4) * pixel;
      const across = load<f32>(entry, 8);
      addScaled(dy, (1 - down) * (1 - across), upper + left, pixel);
      addScaled(dy, (1 - down) * across, upper + right, pixel);
      addScaled(dy, down * (1 - across), lower + left, pixel);
      addScaled(dy, down * across, lower + right, pixel);
      dy += pixel;
    }
  }
}

/** `to += weight * from` */
function addScaled(from: usize, weight: f32, to: usize, bytes: usize): void {
  const weights = f32x4.splat(weight);
  let at: usize = 0;
  for (; at + 16 <= bytes; at += 16) {
    v128.store(to + at, f32x4.relaxed_madd(v128.load(from + at), weights, v128.load(to + at)));
  }
  for (; at < bytes; at += 4) store<f32>(to + at, load<f32>(to + at) + weight * load<f32>(from + at));
}
