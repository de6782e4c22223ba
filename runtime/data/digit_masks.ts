/**
 * Real handwritten digits on drawn backgrounds, and the masks of their strokes: a segmentation to learn without
 * a download by hand.
 * @module
 */
import { checkKeys } from "../checks.ts";
import { mnist } from "./mnist.ts";
import { PURPOSE, type Random, randomStream } from "./random.ts";
import type { Samples } from "./samples.ts";
import { Texture } from "./texture.ts";

/** Options of {@linkcode digitMasks}. */
export interface DigitMasksOptions {
  /** `[height, width, channels]` of an image (default `[64, 64, 3]`), height and width at least 16. */
  readonly shape?: readonly [number, number, number];
  /** Digits to draw with: `train`, 9,000 of MNIST's (default), or `test`, 1,000 others. */
  readonly split?: "train" | "test";
  /** How many images (default 2,000 to train and 500 to test). */
  readonly count?: number;
  /** Images of another seed are independent of these (default 0). */
  readonly seed?: number;
}

/** Side of a digit of MNIST. */
const SIDE = 28;
/** Least height and width: smaller digits have no strokes left. */
const LEAST = 16;
/** Most digits in an image. */
const MOST = 3;
/** Height of a digit's box, as part of the image's shorter side. */
const SIZE = { least: 0.4, most: 0.8 } as const;
/** Most by which a digit is turned, in radians. */
const TURN = 0.5;
/** Least difference of the ink from the background's mean, in the mean over channels. */
const CONTRAST = 0.25;
/** Standard deviation of the noise of each value, as a camera's. */
const GRAIN = 0.02;

/**
 * Digits of MNIST, one to three in an image, each of its own size, turn, place and ink, on a textured
 * background. Each image is a function of the seed and its index alone, made when it is read; `train` and
 * `test` share neither digits nor backgrounds.
 *
 * - input: `[height, width, channels]`, from 0 to 1
 * - target: `[height, width, 1]`, 1 where a stroke covers half of the pixel or more, else 0
 *
 * @throws {RangeError} if an option is out of its range
 * @throws {Error} if MNIST's package cannot be fetched
 *
 * @example
 * ```ts
 * const train = await digitMasks({ shape: [64, 64, 3], count: 1_000 });
 * const test = await digitMasks({ shape: [64, 64, 3], split: "test" });
 * console.log(train.target.shape, test.length);
 * ```
 */
export async function digitMasks(options: DigitMasksOptions = {}): Promise<Samples> {
  checkKeys("digitMasks", options, ["shape", "split", "count", "seed"]);
  const { shape = [64, 64, 3], split = "train", seed = 0 } = options;
  if (split !== "train" && split !== "test") {
    throw new RangeError(`Cannot take the split "${split}": expected "train" or "test"`);
  }
  const { count = split === "train" ? 2_000 : 500 } = options;
  const valid = Array.isArray(shape) && shape.length === 3 && shape.every(Number.isInteger);
  if (!valid || shape[0] < LEAST || shape[1] < LEAST || shape[2] < 1) {
    throw new RangeError(
      `Cannot draw digits on [${String(shape).replaceAll(",", ", ")}]: expected [height, width, channels], ` +
        `height and width from ${LEAST}, channels from 1`,
    );
  }
  if (!Number.isInteger(count) || count < 1) {
    throw new RangeError(`Cannot draw ${count} images: expected an integer from 1`);
  }
  randomStream(PURPOSE.digitMasks, seed); // refuses a seed that is none
  const digits = await mnist({ split });
  const painter = new Painter(shape, digits);
  return {
    length: count,
    input: { shape, dtype: "float32" },
    target: { shape: [shape[0], shape[1], 1], dtype: "float32" },
    read(index, input, target) {
      if (!(index >= 0 && index < count)) {
        throw new RangeError(`Cannot read image ${index}: expected 0 to ${count - 1}`);
      }
      painter.paint(randomStream(PURPOSE.digitMasks, seed, split === "train" ? 0 : 1, index), input, target);
    },
  };
}

/** Draws images of one shape. */
class Painter {
  readonly #texture: Texture;
  readonly #digit = new Float32Array(SIDE * SIDE);
  readonly #label = new Float32Array(10);

  constructor(readonly shape: readonly [number, number, number], readonly digits: Samples) {
    this.#texture = new Texture(shape);
  }

  paint(random: Random, image: Float32Array, mask: Float32Array): void {
    const background = this.#texture.draw(random, image);
    mask.fill(0);
    const count = 1 + random.below(MOST);
    for (let i = 0; i < count; i++) {
      this.digits.read(random.below(this.digits.length), this.#digit, this.#label);
      this.#stamp(random, inkFor(random, background), image, mask);
    }
    for (let i = 0; i < image.length; i++) {
      image[i] = Math.min(1, Math.max(0, image[i]! + GRAIN * random.normal()));
    }
  }

  /** Puts the digit somewhere: each pixel near it looks up, turned back, what of the digit lies there. */
  #stamp(random: Random, ink: readonly number[], image: Float32Array, mask: Float32Array): void {
    const [height, width, channels] = this.shape;
    const size = (SIZE.least + (SIZE.most - SIZE.least) * random.unit()) * Math.min(height, width);
    const angle = TURN * (2 * random.unit() - 1);
    const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
    // The box stays within the image; its corners, which turning may move out, are paper.
    const centreY = size / 2 + (height - size) * random.unit();
    const centreX = size / 2 + (width - size) * random.unit();
    const scale = SIDE / size;
    const reach = size * Math.SQRT1_2;
    const [top, bottom] = [centreY - reach, centreY + reach].map((y) => clamp(Math.round(y), height));
    const [left, right] = [centreX - reach, centreX + reach].map((x) => clamp(Math.round(x), width));
    for (let y = top!; y < bottom!; y++) {
      for (let x = left!; x < right!; x++) {
        const [dy, dx] = [(y + 0.5 - centreY) * scale, (x + 0.5 - centreX) * scale];
        const cover = this.#cover(SIDE / 2 + cos * dy - sin * dx - 0.5, SIDE / 2 + sin * dy + cos * dx - 0.5);
        if (cover === 0) continue;
        const pixel = y * width + x;
        for (let c = 0; c < channels; c++) {
          const at = pixel * channels + c;
          image[at] = image[at]! + cover * (ink[c]! - image[at]!);
        }
        if (cover >= 0.5) mask[pixel] = 1;
      }
    }
  }

  /** The digit between four of its pixels, 0 outside. */
  #cover(y: number, x: number): number {
    const [top, left] = [Math.floor(y), Math.floor(x)];
    if (top < 0 || left < 0 || top >= SIDE - 1 || left >= SIDE - 1) return 0; // its border is paper
    const [down, right] = [y - top, x - left];
    const at = top * SIDE + left;
    const d = this.#digit;
    const upper = d[at]! * (1 - right) + d[at + 1]! * right;
    const lower = d[at + SIDE]! * (1 - right) + d[at + SIDE + 1]! * right;
    return upper * (1 - down) + lower * down;
  }
}

function clamp(value: number, limit: number): number {
  return Math.min(Math.max(value, 0), limit);
}

/** A colour that stands out from the background's mean. */
function inkFor(random: Random, background: readonly number[]): number[] {
  for (;;) {
    const ink = background.map(() => random.unit());
    const difference = ink.reduce((sum, value, c) => sum + Math.abs(value - background[c]!), 0);
    if (difference >= CONTRAST * background.length) return ink;
  }
}
