/** Backgrounds that are drawn: noise at several scales, in colour. @module */
import type { Random } from "./random.ts";
import { Resizer } from "./resize.ts";

/** Sides of the noise's cells, as parts of the image's shorter side, coarse to fine. */
const SCALES = [1, 1 / 3, 1 / 8, 1 / 20] as const;

/** Fills images of one size with textures. */
export class Texture {
  /** Grids, each finer than the one before, the image last; what makes a grid out of the one before. */
  readonly #grids: readonly Float32Array[];
  readonly #resizers: readonly Resizer[];

  /** @param shape `[height, width, channels]` */
  constructor(readonly shape: readonly [number, number, number]) {
    const [height, width, channels] = shape;
    const side = Math.min(height, width);
    const sizes = SCALES.map((scale) => {
      const cell = Math.max(1, scale * side);
      return { height: Math.ceil(height / cell) + 1, width: Math.ceil(width / cell) + 1 };
    });
    this.#grids = sizes.map((size) => new Float32Array(size.height * size.width * channels));
    this.#resizers = sizes.map((size, i) => new Resizer(size, sizes[i + 1] ?? { height, width }));
  }

  /**
   * Draws a texture: each grid is the one before, interpolated, with noise at its points in one colour at
   * random strength. That is the value noise of Ebert et al., "Texturing and Modeling: A Procedural Approach",
   * chapter 2, added up from coarse to fine.
   *
   * @param target `[height, width, channels]`; its values are between 0 and 1
   * @returns the mean colour, one value a channel
   */
  draw(random: Random, target: Float32Array): number[] {
    const [height, width, channels] = this.shape;
    const base = Array.from({ length: channels }, () => 0.15 + 0.7 * random.unit());
    const [coarsest] = this.#grids;
    for (let i = 0; i < coarsest!.length; i += channels) coarsest!.set(base, i);
    this.#grids.forEach((grid, level) => {
      const colour = base.map(() => 0.35 * (random.unit() - 0.25) * random.unit());
      for (let i = 0; i < grid.length; i += channels) {
        const noise = 2 * random.unit() - 1;
        for (let c = 0; c < channels; c++) grid[i + c]! += noise * colour[c]!;
      }
      this.#resizers[level]!.run(grid, this.#grids[level + 1] ?? target, { channels });
    });
    const mean: number[] = new Array(channels).fill(0);
    for (let i = 0, c = 0; i < target.length; i++) {
      const value = Math.min(1, Math.max(0, target[i]!));
      target[i] = value;
      mean[c]! += value;
      if (++c === channels) c = 0;
    }
    return mean.map((sum) => sum / (height * width));
  }
}
