/** ReLU's gradient. @module */

/** `dx = dy` where `y > 0`, else 0, for `length` values. */
export function reluGradient(dy: usize, y: usize, length: i32, dx: usize): void {
  const zero = f32x4.splat(0);
  const vectors = dx + (<usize> (length & ~3) << 2);
  const end = dx + (<usize> length << 2);
  while (dx < vectors) {
    v128.store(dx, v128.and(v128.load(dy), f32x4.gt(v128.load(y), zero)));
    dy += 16;
    y += 16;
    dx += 16;
  }
  while (dx < end) {
    store<f32>(dx, load<f32>(y) > 0 ? load<f32>(dy) : 0);
    dy += 4;
    y += 4;
    dx += 4;
  }
}
