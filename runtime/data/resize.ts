/**
 * Bilinear resizing of images with half-pixel centres: pixel `i` covers `[i, i + 1)` and its centre is
 * `i + 0.5`, as in TensorFlow's `resizeBilinear(..., halfPixelCenters = true)` and PyTorch's
 * `align_corners=False`.
 * @module
 */

/** Rows and columns, in pixels. */
export interface Size {
  readonly height: number;
  readonly width: number;
}

/** Options of a {@linkcode Resizer}. */
export interface ResizerOptions {
  /**
   * When an axis shrinks, weigh every source pixel that a target pixel covers, as Pillow and torchvision do
   * (default); false takes the two nearest, as TensorFlow does. Makes no difference to an axis that grows.
   */
  readonly antialias?: boolean;
}

/** Pixels, row-major: `[height, width, stride]`. */
export type Pixels = Uint8Array | Uint8ClampedArray | Uint16Array | Float32Array;

/** How pixels are laid out in the source and in the target. */
export interface Layout {
  /** Channels to resize: the first ones of each pixel. */
  readonly channels: number;
  /** Channels of each pixel in the source (default `channels`); a fourth one, alpha, is stepped over. */
  readonly stride?: number;
  /** How often each value is written (default 1): 3 makes a grey image red, green and blue. */
  readonly repeat?: number;
  /** What values are multiplied with (default 1): 1/255 takes bytes to 0..1. */
  readonly scale?: number;
}

/** For each target pixel of an axis, the source pixels that it is the weighted sum of. */
interface Taps {
  /** Source pixels to each target pixel; weights of those that it does not touch are 0. */
  readonly count: number;
  /** The first of them. */
  readonly first: Int32Array;
  /** Their weights, `[target, count]`; each row sums to 1. */
  readonly weights: Float64Array;
}

/** Resizes images of one size to another: weights are computed once, columns first, then rows. */
export class Resizer {
  readonly #columns: Taps;
  readonly #rows: Taps;
  #between = new Float32Array(0);
  #line = new Float32Array(0);

  /** @throws {RangeError} if a size is not a positive integer */
  constructor(readonly from: Size, readonly to: Size, options: ResizerOptions = {}) {
    for (const size of [from.height, from.width, to.height, to.width]) {
      if (!Number.isInteger(size) || size < 1) {
        throw new RangeError(
          `Cannot resize ${from.height} x ${from.width} pixels to ${to.height} x ${to.width}: ` +
            "expected positive integers",
        );
      }
    }
    const antialias = options.antialias ?? true;
    this.#columns = taps(from.width, to.width, antialias);
    this.#rows = taps(from.height, to.height, antialias);
  }

  /**
   * Resizes one image.
   *
   * @param source `[from.height, from.width, stride]`
   * @param target room for `[to.height, to.width, channels * repeat]`
   * @throws {RangeError} if an array is too short
   */
  run(source: Pixels, target: Float32Array, layout: Layout): void {
    const { channels, stride = channels, repeat = 1, scale = 1 } = layout;
    const { from, to } = this;
    expectLength("source", source.length, from, stride);
    expectLength("target", target.length, to, channels * repeat);
    const lineLength = to.width * channels;
    if (this.#line.length !== lineLength) {
      this.#line = new Float32Array(lineLength);
      this.#between = new Float32Array(from.height * lineLength);
    }
    const between = this.#between;
    const line = this.#line;
    resizeColumns(source, from, stride, between, channels, this.#columns);
    const { count, first, weights } = this.#rows;
    for (let y = 0, out = 0; y < to.height; y++) {
      line.fill(0);
      for (let tap = 0; tap < count; tap++) {
        const weight = weights[y * count + tap]! * scale;
        if (weight === 0) continue;
        const start = (first[y]! + tap) * lineLength;
        for (let i = 0; i < lineLength; i++) line[i]! += weight * between[start + i]!;
      }
      if (repeat === 1) {
        target.set(line, out);
        out += lineLength;
      } else {
        for (let i = 0; i < lineLength; i++) {
          const value = line[i]!;
          for (let r = 0; r < repeat; r++) target[out++] = value;
        }
      }
    }
  }
}

function resizeColumns(
  source: Pixels,
  from: Size,
  stride: number,
  between: Float32Array,
  channels: number,
  { count, first, weights }: Taps,
): void {
  for (let y = 0, out = 0; y < from.height; y++) {
    const row = y * from.width;
    for (let x = 0; x < first.length; x++) {
      const start = (row + first[x]!) * stride;
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        for (let tap = 0; tap < count; tap++) {
          sum += weights[x * count + tap]! * source[start + tap * stride + c]!;
        }
        between[out++] = sum;
      }
    }
  }
}

/**
 * The weights of a triangle that is 2 source pixels wide, or 2 target pixels where the axis shrinks and
 * `antialias` is on; pixels beyond the border count for nothing and the others make up for them. That is
 * Pillow's `precompute_coeffs` (src/libImaging/Resample.c), which torchvision follows, and where an axis
 * grows it is the usual interpolation between two neighbours.
 */
function taps(from: number, to: number, antialias: boolean): Taps {
  const step = from / to;
  const reach = antialias ? Math.max(step, 1) : 1;
  const count = Math.min(from, Math.ceil(2 * reach));
  const first = new Int32Array(to);
  const weights = new Float64Array(to * count);
  for (let i = 0; i < to; i++) {
    const centre = (i + 0.5) * step;
    const start = Math.max(0, Math.min(Math.floor(centre - reach + 0.5), from - count));
    first[i] = start;
    const row = weights.subarray(i * count, (i + 1) * count);
    for (let tap = 0; tap < count; tap++) {
      row[tap] = Math.max(0, 1 - Math.abs(start + tap + 0.5 - centre) / reach);
    }
    const sum = row.reduce((a, b) => a + b, 0);
    for (let tap = 0; tap < count; tap++) row[tap]! /= sum;
  }
  return { count, first, weights };
}

function expectLength(name: string, length: number, size: Size, channels: number): void {
  const expected = size.height * size.width * channels;
  if (length < expected) {
    throw new RangeError(
      `Cannot resize with a ${name} of ${length} values: expected ${expected} ` +
        `for ${size.height} x ${size.width} pixels of ${channels} channels`,
    );
  }
}
