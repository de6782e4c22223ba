/** A folder of images, one sub-folder a class, as torchvision's `ImageFolder` reads it. @module */
import { checkKeys } from "../checks.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  checkImages,
  expectShape,
  findFiles,
  type ImageShape,
  list,
  placer,
  readImage,
} from "./image_files.ts";
import type { Samples } from "./samples.ts";

/** Options of {@linkcode imageFolder}. */
export interface ImageFolderOptions {
  /** `[height, width, channels]` of an input; 1 channel is grey, 3 are red, green and blue. */
  readonly shape: ImageShape;
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
  checkKeys("imageFolder", options, ["shape", "classes", "antialias", "verify", "skip"]);
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
  await checkImages(files.map(({ path }) => path), options.verify ?? false);

  const place = placer(options.shape, options.antialias);
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

async function findClasses(root: string, skip: (path: string) => boolean): Promise<string[]> {
  return (await list(root, skip)).filter((entry) => entry.isDirectory).map((entry) => entry.name);
}
