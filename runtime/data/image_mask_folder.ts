/** Images in one folder and their masks in another, for segmentation. @module */
import { checkKeys, shown } from "../checks.ts";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type AugmentOptions, checkAugment, cropImage, drawChanges, flipPixels } from "./augment.ts";
import type { Image } from "./decode.ts";
import { checkImages, expectShape, findFiles, type ImageShape, placer, readImage } from "./image_files.ts";
import type { Samples } from "./samples.ts";

/** Options of {@linkcode imageMaskFolder}. */
export interface ImageMaskFolderOptions extends AugmentOptions {
  /** The folder of images. */
  readonly images: string | URL;
  /** The folder of masks: the same paths and names within it, whatever the extension. */
  readonly masks: string | URL;
  /** `[height, width, channels]` of an input; 1 channel is grey, 3 are red, green and blue. */
  readonly shape: ImageShape;
  /**
   * A pixel belongs to the mask where its brightest color is above this part of white, from 0 to below 1
   * (default 0.5). Files that mark the mask by 1 of 255 need 0.
   */
  readonly threshold?: number;
  /** Weigh all pixels when an image shrinks (default), as torchvision does; false takes the nearest four. */
  readonly antialias?: boolean;
  /** Decode every file before training; otherwise as `imageFolder`. */
  readonly verify?: boolean;
  /** Paths to leave out. Names that start with a dot are left out anyway. */
  readonly skip?: (path: string) => boolean;
}

const KNOWN: readonly (keyof ImageMaskFolderOptions)[] = [
  ...["images", "masks", "shape", "threshold", "antialias", "verify", "skip"] as const,
  ...["flip", "crop", "seed"] as const,
];

interface Pair {
  readonly image: string;
  readonly mask: string;
}

/** Names in one error. */
const SHOWN = 5;

/**
 * Images and their masks, matched by their paths within the two folders without the extension: `a/1.jpg` and
 * `a/1.png`. PNG and JPEG are told by their content. Nothing is kept between reads.
 *
 * - input: `[height, width, channels]`, from 0 to 1, resized bilinearly as `imageFolder` does
 * - target: `[height, width, 1]`, 0 or 1, resized by the nearest neighbour
 *
 * Crops and flips are drawn for each sample and epoch by `seed`, the same for an image and its mask.
 *
 * Needs `--allow-read` for the folders, and for Deno's cache if there are JPEG files.
 *
 * @throws {TypeError | RangeError} if an option is of a wrong type or out of its range
 * @throws {Error} if a folder cannot be read or is empty, if an image has no mask or a mask no image, or if a
 * file is not an image or is damaged; it names the files. From a read, if a mask is of another size than its
 * image
 *
 * @example
 * ```ts ignore
 * const shape = [128, 128, 3] as const;
 * const train = await imageMaskFolder({ images: "cells/x", masks: "cells/y", shape, flip: ["horizontal"] });
 * const test = await imageMaskFolder({ images: "test/x", masks: "test/y", shape });
 * ```
 */
export async function imageMaskFolder(options: ImageMaskFolderOptions): Promise<Samples> {
  checkKeys("imageMaskFolder", options, KNOWN);
  const { threshold = 0.5, verify = false, skip = () => false } = options;
  for (const what of ["images", "masks"] as const) {
    const path: unknown = options[what];
    if (typeof path === "string" || path instanceof URL) continue;
    throw new TypeError(`Cannot read ${what} from ${shown(path)}: expected the path or the URL of a folder`);
  }
  const shape = expectShape(options.shape);
  const [height, width] = shape;
  if (!(threshold >= 0 && threshold < 1)) {
    throw new RangeError(
      `Cannot part masks at ${threshold} of white: expected "threshold" from 0 to below 1`,
    );
  }
  checkAugment(options);
  const pairs = await findPairs(folder(options.images), folder(options.masks), skip);
  await checkImages(pairs.map(({ image }) => image), verify);
  await checkImages(pairs.map(({ mask }) => mask), verify);
  for (const { image, mask } of verify ? pairs : pairs.slice(0, 1)) {
    const [a, b] = await Promise.all([readImage(image), readImage(mask)]);
    expectSameSize({ image, mask }, a, b);
    if (!verify) expectVisible(mask, b, threshold);
  }

  const place = placer(shape, options.antialias);
  return {
    length: pairs.length,
    input: { shape, dtype: "float32" },
    target: { shape: [height, width, 1], dtype: "float32" },
    async read(index, input, target, epoch = 0) {
      const pair = pairs[index];
      if (!pair) throw new RangeError(`Cannot read image ${index}: expected 0 to ${pairs.length - 1}`);
      const image = await readImage(pair.image);
      const mask = await readImage(pair.mask);
      expectSameSize(pair, image, mask);
      const changes = drawChanges(options, index, epoch);
      place(cropImage(image, changes), input);
      placeMask(cropImage(mask, changes), target, { height, width, threshold });
      flipPixels(input, shape, changes);
      flipPixels(target, [height, width, 1], changes);
    },
  };
}

function folder(path: string | URL): string {
  return path instanceof URL ? fileURLToPath(path) : path;
}

/** @throws {Error} that names what has no partner, or two of them */
async function findPairs(
  images: string,
  masks: string,
  skip: (path: string) => boolean,
): Promise<Pair[]> {
  const found = await findByName(images, skip);
  const partners = await findByName(masks, skip);
  if (found.size === 0) throw new Error(`Cannot learn masks: expected images in "${images}", found none`);
  const alone = [...found].filter(([name]) => !partners.has(name)).map(([, path]) => path);
  const orphans = [...partners].filter(([name]) => !found.has(name)).map(([, path]) => path);
  if (alone.length > 0 || orphans.length > 0) {
    const missing = [
      ...(alone.length > 0 ? [`no mask in "${masks}" for ${some(alone)}`] : []),
      ...(orphans.length > 0 ? [`no image in "${images}" for ${some(orphans)}`] : []),
    ];
    throw new Error(
      `Cannot pair images with masks: found ${missing.join(" and ")}; ` +
        `give both the same name, whatever the extension, or leave some out by "skip"`,
    );
  }
  return [...found].map(([name, image]) => ({ image, mask: partners.get(name)! }));
}

function some(paths: readonly string[]): string {
  const names = paths.slice(0, SHOWN).map((path) => `"${path}"`).join(", ");
  return paths.length > SHOWN ? `${names} and ${paths.length - SHOWN} more` : names;
}

/** Files by their path within the folder, without the extension. */
async function findByName(root: string, skip: (path: string) => boolean): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const path of await findFiles(root, skip)) {
    const name = relative(root, path).replace(/\.[^./\\]*$/, "");
    const other = files.get(name);
    if (other !== undefined) {
      throw new Error(
        `Cannot tell "${other}" from "${path}" by their names without extension: keep one, or leave one out by "skip"`,
      );
    }
    files.set(name, path);
  }
  return files;
}

function expectSameSize({ image, mask }: Pair, a: Image, b: Image): void {
  if (a.height === b.height && a.width === b.width) return;
  throw new Error(
    `Cannot use the mask "${mask}": it is ${b.height} x ${b.width} pixels, its image "${image}" is ` +
      `${a.height} x ${a.width}; expected the same size`,
  );
}

/** @throws {Error} for a mask that is all below the threshold, but not all black */
function expectVisible(path: string, mask: Image, threshold: number): void {
  let largest = 0;
  for (let i = 0; i < mask.height * mask.width; i++) largest = Math.max(largest, brightest(mask, i));
  if (largest === 0 || largest > threshold * mask.white) return;
  throw new Error(
    `Cannot use the mask "${path}": its brightest pixel is ${largest} of ${mask.white}, and expected is more ` +
      `than ${threshold * mask.white}; take "threshold" 0 if the mask is whatever is not black`,
  );
}

/** The largest color of a pixel. */
function brightest({ data, stride, channels }: Image, pixel: number): number {
  const at = pixel * stride;
  return channels === 1 ? data[at]! : Math.max(data[at]!, data[at + 1]!, data[at + 2]!);
}

/** Takes the pixel under the centre of each target pixel. */
function placeMask(
  mask: Image,
  target: Float32Array,
  { height, width, threshold }: { height: number; width: number; threshold: number },
): void {
  const limit = threshold * mask.white;
  for (let y = 0, out = 0; y < height; y++) {
    const row = Math.floor((y + 0.5) * mask.height / height) * mask.width;
    for (let x = 0; x < width; x++) {
      const pixel = row + Math.floor((x + 0.5) * mask.width / width);
      target[out++] = brightest(mask, pixel) > limit ? 1 : 0;
    }
  }
}
