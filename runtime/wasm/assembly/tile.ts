/**
 * The innermost part of every product: a tile of 4 rows and 8 columns, from packed panels.
 *
 * Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008. Four rows and eight
 * columns keep eight accumulators, which hide the latency of a multiply-add, in the sixteen registers that a
 * 128-bit machine has.
 * @module
 */

/** Rows of a tile. */
export const ROWS = 4;
/** Columns of a tile. */
export const COLUMNS = 8;

/**
 * Computes a tile.
 *
 * @param depth values that each sum has
 * @param a panel `[depth, 4]`
 * @param b panel `[depth, 8]`
 * @param c0 where the tile's rows begin, and so c1 to c3
 * @param add adds to what is there
 */
export function tile(
  depth: i32,
  a: usize,
  b: usize,
  c0: usize,
  c1: usize,
  c2: usize,
  c3: usize,
  add: bool,
): void {
  let s00 = f32x4.splat(0);
  let s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
  const end = a + (<usize> depth << 4);
  while (a < end) {
    const left = v128.load(b), right = v128.load(b, 16), column = v128.load(a);
    let x = v128.shuffle<f32>(column, column, 0, 0, 0, 0);
    s00 = f32x4.relaxed_madd(x, left, s00);
    s01 = f32x4.relaxed_madd(x, right, s01);
    x = v128.shuffle<f32>(column, column, 1, 1, 1, 1);
    s10 = f32x4.relaxed_madd(x, left, s10);
    s11 = f32x4.relaxed_madd(x, right, s11);
    x = v128.shuffle<f32>(column, column, 2, 2, 2, 2);
    s20 = f32x4.relaxed_madd(x, left, s20);
    s21 = f32x4.relaxed_madd(x, right, s21);
    x = v128.shuffle<f32>(column, column, 3, 3, 3, 3);
    s30 = f32x4.relaxed_madd(x, left, s30);
    s31 = f32x4.relaxed_madd(x, right, s31);
    a += 16;
    b += 32;
  }
  if (add) {
    s00 = f32x4.add(s00, v128.load(c0));
    s01 = f32x4.add(s01, v128.load(c0, 16));
    s10 = f32x4.add(s10, v128.load(c1));
    s11 = f32x4.add(s11, v128.load(c1, 16));
    s20 = f32x4.add(s20, v128.load(c2));
    s21 = f32x4.add(s21, v128.load(c2, 16));
    s30 = f32x4.add(s30, v128.load(c3));
    s31 = f32x4.add(s31, v128.load(c3, 16));
  }
  // From the last row to the first: see `locateRows`.
  v128.store(c3, s30);
  v128.store(c3, s31, 16);
  v128.store(c2, s20);
  v128.store(c2, s21, 16);
  v128.store(c1, s10);
  v128.store(c1, s11, 16);
  v128.store(c0, s00);
  v128.store(c0, s01, 16);
}
