/**
 * Products of matrices, and convolutions as products of patches, in blocks that fit into the caches: a panel of
 * `b` into the first one, a block of `a` into the second.
 * @module
 */
import { Job } from "./job";
import { packA } from "./pack_a";
import { packB } from "./pack_b";
import { COLUMNS, ROWS, tile } from "./tile";

/** Rows, columns and depth of a block: the fastest of those tried on ResNet50, by up to 7 % before its neighbours. */
const BLOCK_ROWS: i32 = 32;
const BLOCK_COLUMNS: i32 = 512;
const BLOCK_DEPTH: i32 = 512;
/** Columns that are packed at a time where none is needed twice: they stay in the second cache. */
const FEW_COLUMNS: i32 = 128;

const A_BYTES: usize = <usize> (BLOCK_ROWS * BLOCK_DEPTH) << 2;
const B_BYTES: usize = <usize> (BLOCK_COLUMNS * BLOCK_DEPTH) << 2;
const ZERO_BYTES: usize = <usize> BLOCK_DEPTH << 2;
/** A tile beside `c`. */
const TILE_BYTES: usize = <usize> (ROWS * COLUMNS) << 2;
const TABLE_BYTES: usize = <usize> BLOCK_ROWS << 2;

/** Bytes of memory to work in. */
export function workspaceBytes(): usize {
  return A_BYTES + B_BYTES + ZERO_BYTES + TILE_BYTES + TABLE_BYTES;
}

/** Computes `c`. @param address of a `Job` */
export function multiply(address: usize): void {
  const job = changetype<Job>(address);
  const a = job.workspace, b = a + A_BYTES, zeros = b + B_BYTES, scratch = zeros + ZERO_BYTES;
  const table = scratch + TILE_BYTES;
  memory.fill(zeros, 0, ZERO_BYTES);
  // Where `a` is one block, no panel of `b` is needed twice: each is packed when its turn comes.
  const once = job.m <= BLOCK_ROWS;
  if (once) locateRows(job, 0, job.m, table);
  const step = once ? FEW_COLUMNS : BLOCK_COLUMNS;
  for (let k = 0; k < job.k; k += BLOCK_DEPTH) {
    const depth = min(BLOCK_DEPTH, job.k - k);
    if (once) packA(job, 0, job.m, k, depth, a, zeros);
    for (let column = 0; column < job.n; column += step) {
      const columns = min(step, job.n - column);
      packB(job, k, depth, column, columns, b);
      for (let row = 0; row < job.m; row += BLOCK_ROWS) {
        const rows = min(BLOCK_ROWS, job.m - row);
        if (!once) {
          packA(job, row, rows, k, depth, a, zeros);
          locateRows(job, row, rows, table);
        }
        block(column, rows, columns, depth, a, b, table, scratch, job.add || k > 0);
      }
    }
  }
}

/** Multiplies a packed block of `a` by one of `b`. @param table where each row of `c` begins */
function block(
  column: i32,
  rows: i32,
  columns: i32,
  depth: i32,
  a: usize,
  b: usize,
  table: usize,
  scratch: usize,
  add: bool,
): void {
  for (let j = 0; j < columns; j += COLUMNS) {
    const panel = b + (<usize> (j * depth) << 2);
    const width = min(COLUMNS, columns - j);
    const at = <usize> (column + j) << 2;
    for (let i = 0; i < rows; i += ROWS) {
      const from = a + (<usize> (i * depth) << 2);
      const row = table + (<usize> i << 2);
      const c0 = load<usize>(row), c1 = load<usize>(row, 4), c2 = load<usize>(row, 8), c3 = load<usize>(row, 12);
      if (width == COLUMNS) tile(depth, from, panel, c0 + at, c1 + at, c2 + at, c3 + at, add);
      else {
        tile(depth, from, panel, scratch, scratch + 32, scratch + 64, scratch + 96, false);
        moveRow(scratch, width, c0 + at, add);
        if (i + 1 < rows) moveRow(scratch + 32, width, c1 + at, add);
        if (i + 2 < rows) moveRow(scratch + 64, width, c2 + at, add);
        if (i + 3 < rows) moveRow(scratch + 96, width, c3 + at, add);
      }
    }
  }
}

/** Notes where rows of `c` begin. Rows that are missing in the last tile go to its first, which is written last. */
function locateRows(job: Job, row: i32, rows: i32, table: usize): void {
  const perImage = job.windowRows * job.windowColumns;
  for (let i = 0; i < rows; i++) {
    let at = (row + i) * job.cStride;
    if (job.scattered) {
      const window = (row + i) % perImage;
      at = (row + i) / perImage * job.cImage + window / job.windowColumns * job.cRow +
        window % job.windowColumns * job.cColumn;
    }
    store<usize>(table + (<usize> i << 2), job.c + (<usize> at << 2));
  }
  const first = load<usize>(table + (<usize> (rows - 1 & ~3) << 2));
  for (let i = rows; i % ROWS != 0; i++) store<usize>(table + (<usize> i << 2), first);
}

/** Part of a tile's row. */
function moveRow(from: usize, width: i32, to: usize, add: bool): void {
  for (let i = 0; i < width; i++) {
    const value = load<f32>(from);
    store<f32>(to, add ? load<f32>(to) + value : value);
    from += 4;
    to += 4;
  }
}
