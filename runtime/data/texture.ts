/** Backgrounds that are drawn: noise at several scales, in colour. @module */
import type { Random } from "./random.ts";
import { Resizer } from "./resize.ts";

/** Sides of the noise's cells, as parts of the image's shorter side, coarse to fine. */
const SCALES = [1, 1 / 3, 1 / 8, 1 / 20] as const;

/** Fills images of one size with textures. */
export class Texture {
  readonly #layers: readonly { cells: Float32Array; resizer: Resizer }[];
  readonly #layer: Float32Array;

  /** @param shape `[height, width, channels]` */
  constructor(readonly shape: readonly [number, number, number]) {
    const [height, width, channels] = shape;
    this.#layer = new Float32Array(height * width * channels);
    const side = Math.min(height, width);
    this.#layers = SCALES.map((scale) => {
      const cell = Math.max(1, scale * side);
      const from = { height: Math.ceil(height / cell) + 1, width: Math.ceil(width / cell) + 1 };
      return {
        cells: new Float32Array(from.height * from.width * channels),
        resizer: new Resizer(from, { height, width }),
      };
    });
  }

  /**
   * Draws a texture.
   *
   * Each layer is noise on a grid, interpolated between its points, in one colour at random strength: value
   * noise, as Ebert et al. describe in "Texturing and Modeling: A Procedural Approach", chapter 2.
   *
   * @param target `[height, width, channels]`; its values are between 0 and 1
   * @returns the mean colour, one value a channel
   */
  draw(random: Random, target: Float32Array): number[] {
    const [height, width, channels] = this.shape;
    const base = Array.from({ length: channels }, () => 0.15 + 0.7 * random.unit());
    for (let i = 0; i < height * width; i++) target.set(base, i * channels);
    for (const { cells, resizer } of this.#layers) {
      const colour = Array.from({ length: channels }, () => 0.35 * (random.unit() - 0.25) * random.unit());
      for (let i = 0; i < cells.length; i += channels) {
        const noise = 2 * random.unit() - 1;
        for (let c = 0; c < channels; c++) cells[i + c] = noise * colour[c]!;
      }
      resizer.run(cells, this.#layer, { channels });
      for (let i = 0; i < target.length; i++) target[i]! += this.#layer[i]!;
    }
    const mean: number[] = new Array(channels).fill(0);
    for (let i = 0; i < target.length; i++) {
      const value = Math.min(1, Math.max(0, target[i]!));
      target[i] = value;
      mean[i % channels]! += value / (height * width);
    }
    return mean;
  }
}
