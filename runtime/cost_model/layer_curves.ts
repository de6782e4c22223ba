/** What a model's layers take, as functions of the samples in a micro-batch. @module */
import type { LayerCost } from "../../stages/balance.ts";

/** What each layer takes with one number of samples, in seconds. */
export interface LayerPoint {
  /** Samples in the micro-batch. */
  readonly samples: number;
  /** By the layer's name; a layer that is missing takes nothing. */
  readonly costs: Readonly<Record<string, LayerCost>>;
}

const NOTHING: LayerCost = { F: 0, B: 0, W: 0 };

/**
 * Costs measured with a few numbers of samples, linear between them: half the samples take more than half the time,
 * for weights are read, and their gradients written, once a micro-batch.
 *
 * More samples never take less time: where a measurement says so, it is taken for noise.
 */
export class LayerCurves {
  readonly #points: readonly LayerPoint[];

  /** @throws {RangeError} without a point */
  constructor(points: readonly LayerPoint[]) {
    if (points.length === 0) throw new RangeError("Cannot tell what layers cost: nothing was measured");
    this.#points = [...points].sort((a, b) => a.samples - b.samples);
  }

  /** Seconds of one layer. @param samples need not be whole: the mean of uneven micro-batches */
  at(layer: string, samples: number): LayerCost {
    const part = (kind: keyof LayerCost) => {
      let most = 0;
      return lineThrough(
        this.#points.map((point): [number, number] => {
          most = Math.max(most, (point.costs[layer] ?? NOTHING)[kind]);
          return [point.samples, most];
        }),
        samples,
      );
    };
    return { F: part("F"), B: part("B"), W: part("W") };
  }
}

/**
 * The value at `x` of the line through points that rise: beyond the last two as they go on; below the first as the
 * first two come from, but no less than in proportion.
 */
function lineThrough(points: readonly (readonly [x: number, y: number])[], x: number): number {
  const [first, second] = points;
  if (second === undefined) return first![1] * x / first![0];
  let right = points.findIndex(([at]) => at >= x);
  if (right === -1) right = points.length - 1;
  const [x0, y0] = points[Math.max(0, right - 1)]!;
  const [x1, y1] = points[Math.max(1, right)]!;
  const y = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
  return Math.max(y, x < first![0] ? first![1] * x / first![0] : 0);
}
