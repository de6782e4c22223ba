/** The gradient of a depthwise filter `[height, width, channels, 1]`. @module */
import { add } from "./rows";

/**
 * Sums input times output gradient over all windows.
 *
 * @param top rows of padding above the image, and so `left`
 * @param partial room for as many values as the filter has: one image's sums, apart from the others' as long
 * sums of small numbers lose digits
 */
export function depthwiseFilterGradient(
  x: usize,
  dy: usize,
  gradient: usize,
  partial: usize,
  batch: i32,
  height: i32,
  width: i32,
  channels: i32,
  rows: i32,
  columns: i32,
  filterHeight: i32,
  filterWidth: i32,
  strideY: i32,
  strideX: i32,
  dilationY: i32,
  dilationX: i32,
  top: i32,
  left: i32,
): void {
  const pixel = <usize> channels << 2;
  const image = <usize> (height * width) * pixel;
  const bytes = <usize> (filterHeight * filterWidth) * pixel;
  memory.fill(gradient, 0, bytes);
  for (let sample = 0; sample < batch; sample++) {
    memory.fill(partial, 0, bytes);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        let to = partial;
        for (let i = 0; i < filterHeight; i++) {
          const fromY = row * strideY - top + i * dilationY;
          for (let j = 0; j < filterWidth; j++) {
            const fromX = column * strideX - left + j * dilationX;
            if (<u32> fromY < <u32> height && <u32> fromX < <u32> width) {
              addProducts(x + <usize> (fromY * width + fromX) * pixel, dy, to, pixel);
            }
            to += pixel;
          }
        }
        dy += pixel;
      }
    }
    add(partial, gradient, bytes);
    x += image;
  }
}

/** `to += a * b` */
// @ts-ignore: decorator
@inline
function addProducts(a: usize, b: usize, to: usize, bytes: usize): void {
  let at: usize = 0;
  for (; at + 16 <= bytes; at += 16) {
    v128.store(to + at, f32x4.relaxed_madd(v128.load(a + at), v128.load(b + at), v128.load(to + at)));
  }
  for (; at < bytes; at += 4) {
    store<f32>(to + at, load<f32>(to + at) + load<f32>(a + at) * load<f32>(b + at));
  }
}
