/** The gradient of a maximum over windows of images `[batch, height, width, channels]`. @module */

/**
 * Adds each window's gradient to the first pixel, row by row, that has its maximum. `dx` is cleared first.
 *
 * @param top rows of padding above the image, and so `left`
 */
export function maxPoolGradient(
  dy: usize,
  x: usize,
  y: usize,
  dx: usize,
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
  top: i32,
  left: i32,
): void {
  const pixel = <usize> channels << 2;
  const image = <usize> (height * width) * pixel;
  memory.fill(dx, 0, <usize> batch * image);
  for (let sample = 0; sample < batch; sample++) {
    for (let row = 0; row < rows; row++) {
      const y0 = row * strideY - top, firstY = max(y0, 0), endY = min(y0 + filterHeight, height);
      for (let column = 0; column < columns; column++) {
        const x0 = column * strideX - left, firstX = max(x0, 0), endX = min(x0 + filterWidth, width);
        let at: usize = 0;
        for (; at + 16 <= pixel; at += 16) {
          const largest = v128.load(y + at), gradient = v128.load(dy + at);
          let open = i32x4.splat(-1);
          for (let i = firstY; i < endY; i++) {
            for (let j = firstX; j < endX; j++) {
              const from = <usize> (i * width + j) * pixel + at;
              const here = v128.and(open, f32x4.eq(v128.load(x + from), largest));
              const sum = f32x4.add(v128.load(dx + from), v128.and(gradient, here));
              v128.store(dx + from, sum);
              open = v128.andnot(open, here);
            }
          }
        }
        for (; at < pixel; at += 4) {
          const from = firstEqual(x + at, load<f32>(y + at), firstY, endY, firstX, endX, width, pixel);
          if (from >= 0) {
            const place = dx + at + <usize> from;
            store<f32>(place, load<f32>(place) + load<f32>(dy + at));
          }
        }
        dy += pixel;
        y += pixel;
      }
    }
    x += image;
    dx += image;
  }
}

/** Bytes from `x` to the first pixel of a window that is `value`; -1 if there is none (it is not a number). */
function firstEqual(
  x: usize,
  value: f32,
  firstY: i32,
  endY: i32,
  firstX: i32,
  endX: i32,
  width: i32,
  pixel: usize,
): i32 {
  for (let i = firstY; i < endY; i++) {
    for (let j = firstX; j < endX; j++) {
      const from = (i * width + j) * <i32> pixel;
      if (load<f32>(x + <usize> from) == value) return from;
    }
  }
  return -1;
}
