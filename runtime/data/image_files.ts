/** Folders of image files: found, looked at before training, read, and resized to an input. @module */
import { shown } from "../checks.ts";
import { join } from "node:path";
import { decodeImage, holdsEnd, type Image, type ImageFormat, imageFormat } from "./decode.ts";
import { Resizer } from "./resize.ts";

/** `[height, width, channels]` of an input; 1 channel is grey, 3 are red, green and blue. */
export type ImageShape = readonly [height: number, width: number, channels: number];

/** Bytes looked at on both ends of a file. */
const PROBE = 64;
/** Files looked at together, so that one's wait for the disk overlaps the others'. */
const TOGETHER = 32;
/** Parts of red, green and blue in grey (ITU-R BT.601), as in Pillow and torchvision's `Grayscale`. */
const GREY = [0.299, 0.587, 0.114] as const;

/** @throws {RangeError} if it is none */
export function expectShape(shape: ImageShape): ImageShape {
  if (!Array.isArray(shape)) {
    throw new TypeError(
      `Cannot read images as ${
        shown(shape)
      }: expected "shape" to be [height, width, channels], as in [128, 128, 3]`,
    );
  }
  const valid = shape.length === 3 && shape.every((dim) => Number.isInteger(dim) && dim > 0);
  if (!valid || (shape[2] !== 1 && shape[2] !== 3)) {
    throw new RangeError(
      `Cannot read images as [${shape.join(", ")}]: expected [height, width, channels] with 1 or 3 channels`,
    );
  }
  return shape;
}

/**
 * What puts an image into an input's place, resized bilinearly; keeps the weights of the last size that it met.
 *
 * @param antialias see {@linkcode Resizer}
 */
export function placer(
  [height, width, channels]: ImageShape,
  antialias?: boolean,
): (image: Image, input: Float32Array) => void {
  const colours = new Float32Array(channels === 1 ? height * width * 3 : 0);
  let resizer: Resizer | undefined;
  return (image, input) => {
    if (resizer?.from.height !== image.height || resizer.from.width !== image.width) {
      resizer = new Resizer({ height: image.height, width: image.width }, { height, width }, { antialias });
    }
    const layout = { channels: image.channels, stride: image.stride, scale: 1 / image.white };
    if (channels === 3 || image.channels === 1) {
      resizer.run(image.data, input, { ...layout, repeat: channels / image.channels });
      return;
    }
    resizer.run(image.data, colours, layout);
    for (let i = 0; i < height * width; i++) {
      input[i] = GREY[0] * colours[3 * i]! + GREY[1] * colours[3 * i + 1]! + GREY[2] * colours[3 * i + 2]!;
    }
  };
}

/** A file or folder. */
export interface Entry {
  readonly path: string;
  readonly name: string;
  readonly isDirectory: boolean;
}

/** What a directory holds, by name; a link counts as what it leads to. */
export async function list(directory: string, skip: (path: string) => boolean): Promise<Entry[]> {
  const entries: Entry[] = [];
  try {
    for await (const { name, isSymlink, isDirectory } of Deno.readDir(directory)) {
      const path = join(directory, name);
      if (name.startsWith(".") || skip(path)) continue;
      entries.push({
        path,
        name,
        isDirectory: isSymlink ? (await Deno.stat(path)).isDirectory : isDirectory,
      });
    }
  } catch (cause) {
    throw new Error(`Cannot list the images in "${directory}": ${reason(cause)}`, { cause });
  }
  return entries.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** All files of a directory, at any depth, in the order of their names. */
export async function findFiles(directory: string, skip: (path: string) => boolean): Promise<string[]> {
  const paths: string[] = [];
  for (const { path, isDirectory } of await list(directory, skip)) {
    if (isDirectory) paths.push(...await findFiles(path, skip));
    else paths.push(path);
  }
  return paths;
}

/**
 * Looks at every file; decodes the first of each format, those that look broken, and all if `verify`.
 *
 * @throws {Error} that names a file which is no image or is damaged
 */
export async function checkImages(paths: readonly string[], verify: boolean): Promise<void> {
  const seen = new Set<ImageFormat>();
  for (let i = 0; i < paths.length; i += TOGETHER) {
    const probes = await Promise.all(paths.slice(i, i + TOGETHER).map(probe));
    for (const { path, format, whole } of probes) {
      const known = format !== undefined && seen.has(format);
      if (format) seen.add(format);
      if (verify || !known || !whole) await readImage(path);
    }
  }
}

interface Probe {
  readonly path: string;
  readonly format: ImageFormat | undefined;
  /** Whether the file has the end of its format. */
  readonly whole: boolean;
}

async function probe(path: string): Promise<Probe> {
  try {
    using file = await Deno.open(path);
    const head = await readUpTo(file, PROBE);
    const { size } = await file.stat();
    await file.seek(Math.max(0, size - PROBE), Deno.SeekMode.Start);
    const tail = await readUpTo(file, PROBE);
    const format = imageFormat(head);
    return { path, format, whole: format !== undefined && holdsEnd(format, tail) };
  } catch (cause) {
    throw new Error(`Cannot read the image "${path}": ${reason(cause)}`, { cause });
  }
}

async function readUpTo(file: Deno.FsFile, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, await file.read(bytes) ?? 0);
}

/** Decodes a file. @throws {Error} that names the file and what is wrong with it */
export async function readImage(path: string): Promise<Image> {
  try {
    return await decodeImage(await Deno.readFile(path));
  } catch (cause) {
    throw new Error(`Cannot read the image "${path}": ${reason(cause)}`, { cause });
  }
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
