/** Packs the first factor of a product into panels `[depth, 4]`. @module */
import { Job, Layout, TAP_BYTES } from "./job";
import { ROWS } from "./tile";

/** Where the four rows of a panel come from, for each tap; kept in globals, which are registers' next of kin. */
let image0: usize = 0, image1: usize = 0, image2: usize = 0, image3: usize = 0;
let y0: i32 = 0, y1: i32 = 0, y2: i32 = 0, y3: i32 = 0;
let x0: i32 = 0, x1: i32 = 0, x2: i32 = 0, x3: i32 = 0;

/**
 * Packs `rows` rows from `row` on, of `depth` columns from `column` on. Rows that are missing in the last panel
 * are zeros.
 *
 * @param zeros as many zeros as the deepest panel has
 */
export function packA(
  job: Job,
  row: i32,
  rows: i32,
  column: i32,
  depth: i32,
  to: usize,
  zeros: usize,
): void {
  for (let at = 0; at < rows; at += ROWS) {
    const count = min(ROWS, rows - at);
    if (job.aLayout == Layout.ROWS) packRows(job, row + at, count, column, depth, to, zeros);
    else if (job.aLayout == Layout.COLUMNS) packColumns(job, row + at, count, column, depth, to);
    else if (job.aLayout == Layout.PATCHES) packPatches(job, row + at, count, column, depth, to, zeros);
    else packPatchesTransposed(job, row + at, count, column, depth, to);
    to += <usize> depth << 4;
  }
}

function packRows(job: Job, row: i32, count: i32, column: i32, depth: i32, to: usize, zeros: usize): void {
  const stride = <usize> job.aStride << 2;
  const first = job.a + <usize> row * stride + (<usize> column << 2);
  interleave(
    first,
    count > 1 ? first + stride : zeros,
    count > 2 ? first + 2 * stride : zeros,
    count > 3 ? first + 3 * stride : zeros,
    depth,
    to,
  );
}

/** Four runs of values side by side: value by value, one of each. */
function interleave(r0: usize, r1: usize, r2: usize, r3: usize, length: i32, to: usize): void {
  const whole = r0 + (<usize> (length & ~3) << 2);
  const end = r0 + (<usize> length << 2);
  while (r0 < whole) {
    const v0 = v128.load(r0), v1 = v128.load(r1), v2 = v128.load(r2), v3 = v128.load(r3);
    const low01 = v128.shuffle<f32>(v0, v1, 0, 4, 1, 5), high01 = v128.shuffle<f32>(v0, v1, 2, 6, 3, 7);
    const low23 = v128.shuffle<f32>(v2, v3, 0, 4, 1, 5), high23 = v128.shuffle<f32>(v2, v3, 2, 6, 3, 7);
    v128.store(to, v128.shuffle<f64>(low01, low23, 0, 2));
    v128.store(to, v128.shuffle<f64>(low01, low23, 1, 3), 16);
    v128.store(to, v128.shuffle<f64>(high01, high23, 0, 2), 32);
    v128.store(to, v128.shuffle<f64>(high01, high23, 1, 3), 48);
    r0 += 16;
    r1 += 16;
    r2 += 16;
    r3 += 16;
    to += 64;
  }
  while (r0 < end) {
    store<f32>(to, load<f32>(r0));
    store<f32>(to, load<f32>(r1), 4);
    store<f32>(to, load<f32>(r2), 8);
    store<f32>(to, load<f32>(r3), 12);
    r0 += 4;
    r1 += 4;
    r2 += 4;
    r3 += 4;
    to += 16;
  }
}

function packColumns(job: Job, row: i32, count: i32, column: i32, depth: i32, to: usize): void {
  const stride = <usize> job.aStride << 2;
  let from = job.a + <usize> column * stride + (<usize> row << 2);
  const end = to + (<usize> depth << 4);
  while (to < end) {
    copyUpTo4(from, count, to);
    from += stride;
    to += 16;
  }
}

/** Four values, of which `count` are there. */
// @ts-ignore: decorator
@inline
function copyUpTo4(from: usize, count: i32, to: usize): void {
  if (count == 4) v128.store(to, v128.load(from));
  else {
    store<f32>(to, load<f32>(from));
    store<f32>(to, count > 1 ? load<f32>(from, 4) : 0, 4);
    store<f32>(to, count > 2 ? load<f32>(from, 8) : 0, 8);
    store<f32>(to, 0, 12);
  }
}

function packPatches(job: Job, row: i32, count: i32, column: i32, depth: i32, to: usize, zeros: usize): void {
  locate(job, row, count);
  const channels = job.channels;
  let tap = column / channels;
  let channel = column % channels;
  while (depth > 0) {
    const length = min(channels - channel, depth);
    const offset = job.tapTable + <usize> tap * TAP_BYTES;
    const dy = load<i32>(offset), dx = load<i32>(offset, 4);
    const at = <usize> channel << 2;
    interleave(
      pixel(job, image0, y0 + dy, x0 + dx, at, zeros),
      pixel(job, image1, y1 + dy, x1 + dx, at, zeros),
      pixel(job, image2, y2 + dy, x2 + dx, at, zeros),
      pixel(job, image3, y3 + dy, x3 + dx, at, zeros),
      length,
      to,
    );
    to += <usize> length << 4;
    depth -= length;
    channel = 0;
    tap++;
  }
}

/** Finds the windows of four rows; those that are missing lie outside of every image. */
function locate(job: Job, row: i32, count: i32): void {
  const columns = job.windowColumns;
  const perImage = job.windowRows * columns;
  const bytes = <usize> (job.height * job.width * job.pixel) << 2;
  const outside = i32.MIN_VALUE >> 1;
  for (let i = 0; i < ROWS; i++) {
    const there = i < count;
    const sample = (row + i) / perImage;
    const window = (row + i) % perImage;
    const image = there ? job.a + <usize> sample * bytes : 0;
    const y = there ? window / columns * job.strideY : outside;
    const x = there ? window % columns * job.strideX : outside;
    if (i == 0) image0 = image, y0 = y, x0 = x;
    else if (i == 1) image1 = image, y1 = y, x1 = x;
    else if (i == 2) image2 = image, y2 = y, x2 = x;
    else image3 = image, y3 = y, x3 = x;
  }
}

/** Where a pixel's values lie, from `at` bytes on: padding is zeros. */
// @ts-ignore: decorator
@inline
function pixel(job: Job, image: usize, y: i32, x: i32, at: usize, zeros: usize): usize {
  if (<u32> y >= <u32> job.height || <u32> x >= <u32> job.width) return zeros;
  return image + (<usize> ((y * job.width + x) * job.pixel) << 2) + at;
}

function packPatchesTransposed(
  job: Job,
  row: i32,
  count: i32,
  column: i32,
  depth: i32,
  to: usize,
): void {
  const channels = job.channels;
  const channel = row % channels;
  if (channel + count <= channels) {
    packTap(job, row / channels, channel, count, column, depth, to, 4);
    return;
  }
  // The panel's rows belong to several taps.
  for (let i = 0; i < ROWS; i++) {
    const at = row + i;
    if (i < count) packTap(job, at / channels, at % channels, 1, column, depth, to + (<usize> i << 2), 1);
    else {
      let next = to + (<usize> i << 2);
      for (let j = 0; j < depth; j++, next += 16) store<f32>(next, 0);
    }
  }
}

/** What one tap meets in each window, `count` channels of it, filled up to `width` values. */
function packTap(
  job: Job,
  tap: i32,
  channel: i32,
  count: i32,
  window: i32,
  depth: i32,
  to: usize,
  width: i32,
): void {
  const height = <u32> job.height, imageWidth = <u32> job.width;
  const columns = job.windowColumns, perImage = job.windowRows * columns;
  const table = job.tapTable + <usize> tap * TAP_BYTES;
  const dy = load<i32>(table), dx = load<i32>(table, 4);
  const pixelBytes = <usize> job.pixel << 2;
  const imageBytes = <usize> (height * imageWidth) * pixelBytes;
  let image = job.a + <usize> (window / perImage) * imageBytes + (<usize> channel << 2);
  let windowRow = window % perImage / columns, windowColumn = window % perImage % columns;
  let y = windowRow * job.strideY + dy, x = windowColumn * job.strideX + dx;
  const end = to + (<usize> depth << 4);
  while (to < end) {
    if (<u32> y < height && <u32> x < imageWidth) {
      const from = image + <usize> (<u32> y * imageWidth + <u32> x) * pixelBytes;
      if (width == 1) store<f32>(to, load<f32>(from));
      else copyUpTo4(from, count, to);
    } else if (width == 1) store<f32>(to, 0);
    else v128.store(to, f32x4.splat(0));
    to += 16;
    x += job.strideX;
    if (++windowColumn == columns) {
      windowColumn = 0;
      x = dx;
      y += job.strideY;
      if (++windowRow == job.windowRows) {
        windowRow = 0;
        y = dy;
        image += imageBytes;
      }
    }
  }
}
