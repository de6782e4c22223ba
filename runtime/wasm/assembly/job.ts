/** What a product is told: `runtime/wasm/simd/job.ts` writes the fields in this order. @module */

/** How values of a factor are found. */
export namespace Layout {
  /** Row by row. */
  export const ROWS: i32 = 0;
  /** Column by column: the factor is stored transposed. */
  export const COLUMNS: i32 = 1;
  /** Rows are the patches of images that a filter meets, tap by tap. */
  export const PATCHES: i32 = 2;
  /** The same, transposed: columns are patches. */
  export const PATCHES_TRANSPOSED: i32 = 3;
  /** Column by column, in blocks of one tap of a filter each. */
  export const TAP_COLUMNS: i32 = 4;
}

/** Bytes of a tap: the offset of its row and column from a window's corner, and its index in the filter. */
export const TAP_BYTES: usize = 12;

/**
 * `c = a b`, with `a` of `m` rows and `k` columns, and `b` of `n` columns. Addresses are in bytes; sizes and
 * distances in values of four bytes.
 */
@unmanaged
export class Job {
  m: i32;
  n: i32;
  k: i32;
  a: usize;
  aLayout: i32;
  /** From one row (or column) of `a` to the next. */
  aStride: i32;
  b: usize;
  bLayout: i32;
  bStride: i32;
  c: usize;
  /** From one row of `c` to the next, where rows are no pixels. */
  cStride: i32;
  /** Whether the product is added to what `c` is. */
  add: i32;
  /** Patches: the images, `[batch, height, width, pixel]`. */
  height: i32;
  width: i32;
  pixel: i32;
  /** Values that a tap meets: a pixel's, or those of several pixels side by side. */
  channels: i32;
  /** Windows of an image, and how far apart they lie in it. */
  windowRows: i32;
  windowColumns: i32;
  strideY: i32;
  strideX: i32;
  tapTable: usize;
  /** Whether rows of `c` are pixels; then how far apart those of windows lie. */
  scattered: i32;
  cImage: i32;
  cRow: i32;
  cColumn: i32;
  /** Memory to work in; see `WORKSPACE_BYTES`. */
  workspace: usize;
}
