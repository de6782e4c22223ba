/** Images and masks to train the U-Net on, and others that are held out. @module */
import { join } from "node:path";
import { sizeOf } from "../ring/dtype.ts";
import { digitMasks } from "../runtime/data/digit_masks.ts";
import { imageMaskFolder } from "../runtime/data/image_mask_folder.ts";
import { inMemory } from "../runtime/data/in_memory.ts";
import type { Samples } from "../runtime/data/samples.ts";
import { synthetic } from "../runtime/data/synthetic.ts";
import { SEED } from "./entries.ts";
import type { BenchOptions } from "./options.ts";

/** Most images held out: enough to compare strategies by. */
const HELD_OUT = 64;
/** Of a folder, each image whose number is a multiple of this is held out. */
const EVERY = 5;
/** Most bytes of images that are drawn ahead. */
const MOST_KEPT = 2 ** 30;
/** Batches of synthetic data, so that steps see new ones. */
const SYNTHETIC_BATCHES = 4;

/** Both parts. */
export interface MaskData {
  readonly train: Samples;
  readonly heldOut: Samples;
}

/**
 * Loads what the options name.
 *
 * @throws {RangeError} if there is no whole batch to train on, or nothing to hold out
 */
export async function loadMasks({ data, size, batch }: BenchOptions): Promise<MaskData> {
  const shape = [size, size, 3] as [number, number, number];
  if (data === "digits") {
    const train = await digitMasks({ shape, seed: SEED });
    const bytes = 4 * train.length * (sizeOf(train.input.shape) + sizeOf(train.target.shape));
    return {
      // Drawing takes a core that others train on.
      train: bytes <= MOST_KEPT ? await inMemory(train) : train,
      heldOut: await digitMasks({ shape, seed: SEED, split: "test", count: HELD_OUT }),
    };
  }
  if (data === "synthetic") {
    const make = (count: number, seed: number) =>
      synthetic({ input: shape, target: [size, size, 1], values: "binary", count, seed });
    return { train: make(SYNTHETIC_BATCHES * batch, SEED), heldOut: make(HELD_OUT, SEED + 1) };
  }
  const all = await imageMaskFolder({ images: join(data, "images"), masks: join(data, "masks"), shape });
  return holdOut(all, batch, data);
}

/** Parts samples, alike at every run. @param name of the data, for errors */
export function holdOut(all: Samples, batch: number, name: string): MaskData {
  const indices = Array.from({ length: all.length }, (_, i) => i);
  const held = indices.filter((i) => (i + 1) % EVERY === 0);
  const trained = indices.filter((i) => (i + 1) % EVERY !== 0);
  if (held.length === 0 || trained.length < batch) {
    const least = Math.max(EVERY, batch + Math.floor((batch - 1) / (EVERY - 1)));
    throw new RangeError(
      `Cannot train on the ${all.length} images of ${name}: expected at least ${least}, for one in ${EVERY} is held ` +
        `out and a batch has ${batch}; give more images or a smaller --batch`,
    );
  }
  return { train: pick(all, trained), heldOut: pick(all, held.slice(0, HELD_OUT)) };
}

/** As many samples as make whole batches: a round's step is like every other's. */
export function wholeBatches(samples: Samples, batch: number): Samples {
  const length = Math.floor(samples.length / batch) * batch;
  return length === samples.length ? samples : pick(samples, Array.from({ length }, (_, i) => i));
}

function pick(samples: Samples, indices: readonly number[]): Samples {
  return {
    ...samples,
    length: indices.length,
    read: (index, ...rest) => samples.read(indices[index]!, ...rest),
  };
}
