/** Copies and sums of rows of values. @module */

/** Copies `rows` rows of `bytes` bytes each; strides are in bytes. */
export function copyRows(
  from: usize,
  fromStride: usize,
  to: usize,
  toStride: usize,
  bytes: usize,
  rows: i32,
): void {
  for (let row = 0; row < rows; row++) {
    copy(from, to, bytes);
    from += fromStride;
    to += toStride;
  }
}

/** Copies the rows of `bytes` bytes that `count` indices name. */
export function gatherRows(from: usize, indices: usize, count: i32, to: usize, bytes: usize): void {
  for (let i = 0; i < count; i++) {
    copy(from + <usize> load<i32>(indices) * bytes, to, bytes);
    indices += 4;
    to += bytes;
  }
}

/** Adds each of `count` rows of floats to the one that its index names; those of no row are left out. */
export function addRows(from: usize, indices: usize, count: i32, to: usize, rows: i32, bytes: usize): void {
  for (let i = 0; i < count; i++) {
    const row = load<i32>(indices);
    if (<u32> row < <u32> rows) add(from, to + <usize> row * bytes, bytes);
    indices += 4;
    from += bytes;
  }
}

/** `to += from`, floats. */
export function add(from: usize, to: usize, bytes: usize): void {
  const vectors = to + (bytes & ~15);
  const end = to + bytes;
  while (to < vectors) {
    v128.store(to, f32x4.add(v128.load(to), v128.load(from)));
    from += 16;
    to += 16;
  }
  while (to < end) {
    store<f32>(to, load<f32>(to) + load<f32>(from));
    from += 4;
    to += 4;
  }
}

/** A short run is copied here: a call of `memory.copy` costs more. */
// @ts-ignore: decorator
@inline
function copy(from: usize, to: usize, bytes: usize): void {
  if (bytes > 256) {
    memory.copy(to, from, bytes);
    return;
  }
  let at: usize = 0;
  for (; at + 16 <= bytes; at += 16) v128.store(to + at, v128.load(from + at));
  for (; at + 4 <= bytes; at += 4) store<u32>(to + at, load<u32>(from + at));
  for (; at < bytes; at++) store<u8>(to + at, load<u8>(from + at));
}
