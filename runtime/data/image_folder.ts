/** A folder of images, one sub-folder a class, as torchvision's `ImageFolder` reads it. @module */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeImage, holdsEnd, type Image, type ImageFormat, imageFormat } from "./decode.ts";
import { Resizer } from "./resize.ts";
import type { Samples } from "./samples.ts";

/** Options of {@linkcode imageFolder}. */
export interface ImageFolderOptions {
  /** `[height, width, channels]` of an input; 1 channel is grey, 3 are red, green and blue. */
  readonly shape: readonly [number, number, number];
  /**
   * Names of the sub-folders to use, in the order of the target (default: all, sorted). For a test folder,
   * the `classes` of the folder that the model was trained on.
   */
  readonly classes?: readonly string[];
  /** Weigh all pixels when an image shrinks (default), as torchvision does; false takes the nearest four. */
  readonly antialias?: boolean;
  /**
   * Decode every file before training. Otherwise each file's first and last bytes are looked at, which finds
   * other formats and broken downloads; damage in between ends the training that meets it.
   */
  readonly verify?: boolean;
  /** Paths to leave out. Names that start with a dot are left out anyway. */
  readonly skip?: (path: string) => boolean;
}

interface File {
  readonly path: string;
  readonly label: number;
}

/** Bytes looked at on both ends of a file. */
const PROBE = 64;
/** Files looked at together, so that one's wait for the disk overlaps the others'. */
const TOGETHER = 32;
/** Parts of red, green and blue in grey (ITU-R BT.601), as in Pillow and torchvision's `Grayscale`. */
const GREY = [0.299, 0.587, 0.114] as const;

/**
 * The images under `directory/<class>/`, at any depth. PNG and JPEG are told by their content, whatever a
 * file is called. Nothing is kept between reads: each decodes its file, which is in the system's cache from
 * the second epoch on.
 *
 * - input: `[height, width, channels]`, from 0 to 1. As in torchvision, the whole image is resized
 *   bilinearly, its proportions changed if they are others; alpha is dropped, and a camera's orientation is
 *   not applied. 16-bit files keep their precision, which Pillow's do not.
 * - target: one-hot, `[classes]`, in the order of the sorted sub-folders
 *
 * Needs `--allow-read` for the directory, and for Deno's cache if there are JPEG files.
 *
 * @throws {RangeError} if an option is out of its range
 * @throws {Error} if the directory cannot be read or holds fewer than two classes, if a class holds no image,
 * or if a file is not an image or is damaged; it names the file
 *
 * @example
 * ```ts ignore
 * const train = await imageFolder("pets/train", { shape: [128, 128, 3] });
 * const test = await imageFolder("pets/test", { shape: [128, 128, 3], classes: train.classes });
 * ```
 */
export async function imageFolder(directory: string | URL, options: ImageFolderOptions): Promise<Samples> {
  const [height, width, channels] = expectShape(options.shape);
  const root = directory instanceof URL ? fileURLToPath(directory) : directory;
  const skip = options.skip ?? (() => false);
  const classes = options.classes ?? await findClasses(root, skip);
  if (classes.length < 2) {
    const found = classes.length === 0 ? "none" : `only "${classes[0]}"`;
    throw new Error(
      `Cannot classify the images in "${root}": expected 2 or more sub-folders, found ${found}`,
    );
  }
  const files: File[] = [];
  for (const [label, name] of classes.entries()) {
    const paths = await findFiles(join(root, name), skip);
    if (paths.length === 0) {
      throw new Error(
        `Cannot learn the class "${name}": expected images in "${join(root, name)}", found none`,
      );
    }
    for (const path of paths) files.push({ path, label });
  }
  await check(files, options.verify ?? false);

  const place = placer(options);
  return {
    length: files.length,
    input: { shape: [height, width, channels], dtype: "float32" },
    target: { shape: [classes.length], dtype: "float32" },
    classes,
    async read(index, input, target) {
      const file = files[index];
      if (!file) throw new RangeError(`Cannot read image ${index}: expected 0 to ${files.length - 1}`);
      place(await readImage(file.path), input);
      target.fill(0, 0, classes.length);
      target[file.label] = 1;
    },
  };
}

function expectShape(shape: readonly [number, number, number]): readonly [number, number, number] {
  const valid = shape.length === 3 && shape.every((dim) => Number.isInteger(dim) && dim > 0);
  if (!valid || (shape[2] !== 1 && shape[2] !== 3)) {
    throw new RangeError(
      `Cannot read images as [${shape.join(", ")}]: expected [height, width, channels] with 1 or 3 channels`,
    );
  }
  return shape;
}

/** What puts an image into an input's place; keeps the weights of the last size that it met. */
function placer({ shape, antialias }: ImageFolderOptions): (image: Image, input: Float32Array) => void {
  const [height, width, channels] = shape;
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

interface Entry {
  readonly path: string;
  readonly name: string;
  readonly isDirectory: boolean;
}

/** What a directory holds, by name; a link counts as what it leads to. */
async function list(directory: string, skip: (path: string) => boolean): Promise<Entry[]> {
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

async function findClasses(root: string, skip: (path: string) => boolean): Promise<string[]> {
  return (await list(root, skip)).filter((entry) => entry.isDirectory).map((entry) => entry.name);
}

async function findFiles(directory: string, skip: (path: string) => boolean): Promise<string[]> {
  const paths: string[] = [];
  for (const { path, isDirectory } of await list(directory, skip)) {
    if (isDirectory) paths.push(...await findFiles(path, skip));
    else paths.push(path);
  }
  return paths;
}

/** Looks at every file; decodes the first of each format, those that look broken, and all if `verify`. */
async function check(files: readonly File[], verify: boolean): Promise<void> {
  const seen = new Set<ImageFormat>();
  for (let i = 0; i < files.length; i += TOGETHER) {
    const probes = await Promise.all(files.slice(i, i + TOGETHER).map(({ path }) => probe(path)));
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

async function readImage(path: string): Promise<Image> {
  try {
    return await decodeImage(await Deno.readFile(path));
  } catch (cause) {
    throw new Error(`Cannot read the image "${path}": ${reason(cause)}`, { cause });
  }
}

function reason(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
