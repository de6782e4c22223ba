/** Products as the WebAssembly module takes them: `../assembly/job.ts` declares the fields. @module */

/** A factor of a product, or what it makes. */
export interface Matrix {
  /** In bytes. */
  readonly address: number;
  /** Values from one row to the next; from one column to the next if it is stored transposed. */
  readonly stride: number;
  readonly transposed?: boolean;
}

/** A tap of a filter: where it lies in a window, from its corner, and its index in the filter. */
export type Tap = readonly [row: number, column: number, index: number];

/** Windows over images `[batch, height, width, pixel]`: a row of the first factor is what one of them holds. */
export interface Windows {
  readonly height: number;
  readonly width: number;
  readonly pixel: number;
  /** Values that a tap meets: a pixel's, or those of several pixels side by side. */
  readonly channels: number;
  /** Windows of one image, and how far apart they lie. */
  readonly rows: number;
  readonly columns: number;
  readonly strideY: number;
  readonly strideX: number;
  readonly taps: readonly Tap[];
}

/** Where the rows of what a product makes lie, if they are pixels: distances in values. */
export interface Scattered {
  readonly image: number;
  readonly row: number;
  readonly column: number;
}

/** `c = a b`, with `a` `[m, k]` and `b` `[k, n]`. */
export interface Product {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: Matrix;
  readonly b: Matrix;
  readonly c: Pick<Matrix, "address" | "stride">;
  /** Adds to what `c` is. */
  readonly add?: boolean;
  /** `a` is images, and its rows their windows; transposed, its columns. */
  readonly windows?: Windows;
  /** `b` is a filter `[taps, n, channels]`, whose taps are taken in the order of the windows'. */
  readonly turned?: boolean;
  readonly scattered?: Scattered;
}

/** Layouts of factors; a transposed one's number is the next. */
const ROWS = 0;
const PATCHES = 2;
const TAP_COLUMNS = 4;

/** Fields before the taps. */
const FIELDS = 26;

/** The fields, and the taps behind them. @param addressOf where so many bytes will lie */
export function writeJob(
  { m, n, k, a, b, c, add, windows, turned, scattered }: Product,
  workspace: number,
  addressOf: (bytes: number) => number,
): Int32Array {
  const taps = windows?.taps ?? [];
  const job = new Int32Array(FIELDS + 3 * taps.length);
  const aLayout = (windows ? PATCHES : ROWS) + (a.transposed ? 1 : 0);
  const table = addressOf(job.byteLength) + 4 * FIELDS;
  // deno-fmt-ignore
  job.set([
    m, n, k,
    a.address, aLayout, a.stride,
    b.address, turned ? TAP_COLUMNS : ROWS + (b.transposed ? 1 : 0), b.stride,
    c.address, c.stride, add ? 1 : 0,
    windows?.height ?? 0, windows?.width ?? 0, windows?.pixel ?? 0, windows?.channels ?? 0,
    windows?.rows ?? 1, windows?.columns ?? 1, windows?.strideY ?? 0, windows?.strideX ?? 0,
    table,
    scattered ? 1 : 0, scattered?.image ?? 0, scattered?.row ?? 0, scattered?.column ?? 0,
    workspace,
  ]);
  taps.forEach((tap, i) => job.set(tap, FIELDS + 3 * i));
  return job;
}
