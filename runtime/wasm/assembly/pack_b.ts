/** Packs the second factor of a product into panels `[depth, 8]`. @module */
import { Job, Layout, TAP_BYTES } from "./job";
import { COLUMNS } from "./tile";

/**
 * Packs `columns` columns from `column` on, of `depth` rows from `row` on. Columns that are missing in the last
 * panel are zeros.
 */
export function packB(job: Job, row: i32, depth: i32, column: i32, columns: i32, to: usize): void {
  if (job.bLayout == Layout.ROWS) {
    packRows(job, row, depth, column, columns, to);
    return;
  }
  for (let at = 0; at < columns; at += COLUMNS) {
    const count = min(COLUMNS, columns - at);
    if (job.bLayout == Layout.COLUMNS) {
      const stride = <usize> job.bStride << 2;
      const from = job.b + <usize> (column + at) * stride + (<usize> row << 2);
      packColumns(from, stride, count, depth, to);
    } else packTaps(job, row, depth, column + at, count, to);
    to += <usize> depth << 5;
  }
}

/** Row by row: what lies side by side in memory is read together. */
function packRows(job: Job, row: i32, depth: i32, column: i32, columns: i32, to: usize): void {
  const stride = <usize> job.bStride << 2;
  const panel = <usize> depth << 5;
  const whole = columns & ~(COLUMNS - 1);
  let line = job.b + <usize> row * stride + (<usize> column << 2);
  for (let k = 0; k < depth; k++) {
    let from = line;
    let at = to;
    for (let j = 0; j < whole; j += COLUMNS) {
      v128.store(at, v128.load(from));
      v128.store(at, v128.load(from, 16), 16);
      from += 32;
      at += panel;
    }
    for (let j = whole; j < columns; j++) {
      store<f32>(at, load<f32>(from));
      from += 4;
      at += 4;
    }
    for (let j = columns; (j & (COLUMNS - 1)) != 0; j++) {
      store<f32>(at, 0);
      at += 4;
    }
    line += stride;
    to += 32;
  }
}

/** @param from the first column's first value; the next column's lies `stride` bytes on */
function packColumns(from: usize, stride: usize, count: i32, depth: i32, to: usize): void {
  let k = 0;
  if (count == COLUMNS) {
    for (; k <= depth - 4; k += 4) {
      transpose4(from, stride, to);
      transpose4(from + (stride << 2), stride, to + 16);
      from += 16;
      to += 128;
    }
  }
  for (; k < depth; k++) {
    let at = from;
    for (let i = 0; i < COLUMNS; i++) {
      store<f32>(to + (<usize> i << 2), i < count ? load<f32>(at) : 0);
      at += stride;
    }
    from += 4;
    to += 32;
  }
}

/** Four values of four columns, as four rows that lie 32 bytes apart. */
// @ts-ignore: decorator
@inline
function transpose4(from: usize, stride: usize, to: usize): void {
  const v0 = v128.load(from), v1 = v128.load(from + stride);
  const v2 = v128.load(from + (stride << 1)), v3 = v128.load(from + stride * 3);
  const low01 = v128.shuffle<f32>(v0, v1, 0, 4, 1, 5), high01 = v128.shuffle<f32>(v0, v1, 2, 6, 3, 7);
  const low23 = v128.shuffle<f32>(v2, v3, 0, 4, 1, 5), high23 = v128.shuffle<f32>(v2, v3, 2, 6, 3, 7);
  v128.store(to, v128.shuffle<f64>(low01, low23, 0, 2));
  v128.store(to, v128.shuffle<f64>(low01, low23, 1, 3), 32);
  v128.store(to, v128.shuffle<f64>(high01, high23, 0, 2), 64);
  v128.store(to, v128.shuffle<f64>(high01, high23, 1, 3), 96);
}

/** A filter `[taps, n, depth of a tap]`, whose taps are taken in the order of the table. */
function packTaps(job: Job, row: i32, depth: i32, column: i32, count: i32, to: usize): void {
  const perTap = job.channels;
  const stride = <usize> job.bStride << 2;
  let tap = row / perTap;
  let channel = row % perTap;
  while (depth > 0) {
    const length = min(perTap - channel, depth);
    const index = load<i32>(job.tapTable + <usize> tap * TAP_BYTES, 8);
    const from = job.b + <usize> (index * job.n + column) * stride + (<usize> channel << 2);
    packColumns(from, stride, count, length, to);
    to += <usize> length << 5;
    depth -= length;
    channel = 0;
    tap++;
  }
}
