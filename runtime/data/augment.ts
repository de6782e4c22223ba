/** Random changes of an image and its mask, the same for both: crops and flips. @module */
import type { Image } from "./decode.ts";
import { PURPOSE, type Random, randomStream } from "./random.ts";

/** What is changed at random. */
export interface AugmentOptions {
  /** Ways in which an image is mirrored, each half of the time (default none). */
  readonly flip?: readonly ("horizontal" | "vertical")[];
  /**
   * The least part of height and width that is kept, above 0 and at most 1 (default 1: all). The part is drawn
   * evenly from there to 1, the same for both sides, and so is the place that is kept.
   */
  readonly crop?: number;
  /** Changes of another seed are independent of these (default 0). */
  readonly seed?: number;
}

/** One draw of the changes. */
export interface Changes {
  readonly horizontal: boolean;
  readonly vertical: boolean;
  /** Part of height and width that is kept, and where it begins: from 0 (first) to 1 (as far as it goes). */
  readonly part: number;
  readonly top: number;
  readonly left: number;
}

/** @throws {TypeError | RangeError} if an option has a value that it cannot have */
export function checkAugment({ flip = [], crop = 1, seed = 0 }: AugmentOptions): void {
  if (!Array.isArray(flip) || flip.some((way) => way !== "horizontal" && way !== "vertical")) {
    throw new TypeError(
      `Cannot flip images ${JSON.stringify(flip)}: expected an array of "horizontal" and "vertical"`,
    );
  }
  if (!(crop > 0 && crop <= 1)) {
    throw new RangeError(
      `Cannot crop images to ${crop} of their size: expected a number above 0, and 1 at most for no crop`,
    );
  }
  randomStream(PURPOSE.augment, seed); // refuses a seed that is none
}

/** The changes of one sample in one epoch: a function of the options' seed and both. */
export function drawChanges(
  { flip = [], crop = 1, seed = 0 }: AugmentOptions,
  index: number,
  epoch: number,
): Changes {
  const random = randomStream(PURPOSE.augment, seed, epoch, index);
  // All are drawn, so that one option does not change what another draws.
  const [horizontal, vertical] = [coin(random), coin(random)];
  const [part, top, left] = [crop + (1 - crop) * random.unit(), random.unit(), random.unit()];
  return {
    horizontal: horizontal && flip.includes("horizontal"),
    vertical: vertical && flip.includes("vertical"),
    part: crop === 1 ? 1 : part,
    top,
    left,
  };
}

function coin(random: Random): boolean {
  return random.bits() < 0;
}

/** The part of an image that is kept: the same place, to a pixel, of images of one size. */
export function cropImage(image: Image, { part, top, left }: Changes): Image {
  if (part === 1) return image;
  const [height, width] = [image.height, image.width].map((size) => Math.max(1, Math.round(size * part)));
  const y = Math.min(Math.floor(top * (image.height - height! + 1)), image.height - height!);
  const x = Math.min(Math.floor(left * (image.width - width! + 1)), image.width - width!);
  const { stride } = image;
  const data = image.data.slice(0, height! * width! * stride);
  for (let row = 0; row < height!; row++) {
    const start = ((y + row) * image.width + x) * stride;
    data.set(image.data.subarray(start, start + width! * stride), row * width! * stride);
  }
  return { ...image, height: height!, width: width!, data };
}

/** Mirrors pixels in place. @param pixels `[height, width, channels]` */
export function flipPixels(
  pixels: Float32Array,
  [height, width, channels]: readonly [number, number, number],
  { horizontal, vertical }: Changes,
): void {
  const swap = (a: number, b: number) => {
    const value = pixels[a]!;
    pixels[a] = pixels[b]!;
    pixels[b] = value;
  };
  if (horizontal) {
    for (let y = 0; y < height; y++) {
      for (let left = 0, right = width - 1; left < right; left++, right--) {
        for (let c = 0; c < channels; c++) {
          swap((y * width + left) * channels + c, (y * width + right) * channels + c);
        }
      }
    }
  }
  if (vertical) {
    const row = width * channels;
    for (let top = 0, bottom = height - 1; top < bottom; top++, bottom--) {
      for (let i = 0; i < row; i++) swap(top * row + i, bottom * row + i);
    }
  }
}
