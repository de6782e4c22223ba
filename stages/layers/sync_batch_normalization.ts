/**
 * BatchNormalization in two layers, between which replicas add up what each has seen: the first gives the moments
 * of a replica's share of a micro-batch, the second normalizes by the moments of the whole. Both are plain ops, so
 * that the gradient flows through the moments: the sum over replicas of the moments' gradients is theirs.
 *
 * Source: Zhang et al., "Context Encoding for Semantic Segmentation", 2018, appendix (synchronized BatchNorm).
 * @module
 */
import { tf } from "../../deps.ts";
import { context } from "../context.ts";
import { type LayerClass, layerClass } from "../tfjs.ts";
import type { BatchNormalizationFields } from "./batch_normalization.ts";
import { only } from "./only.ts";

/** Class name of the layer that gives moments. */
export const MOMENTS = "StaggerMoments";
/** Class name of the layer that normalizes by them. */
export const SYNC_BATCH_NORM = "StaggerSyncBatchNormalization";

/** Vectors of one number per channel that stand for the moments: mean, its square, variance. */
export const MOMENT_ROWS = 3;

/** `[..., channels]` to `[3, channels]`: mean, its square and the biased variance. Means over shares are sums. */
export function moments(): LayerClass {
  return class Moments extends (tf.layers.Layer as unknown as LayerClass) {
    static override readonly className = MOMENTS;
    readonly axis: number;

    constructor(config: { name: string; axis: number }) {
      super(config as never);
      this.axis = config.axis;
    }

    computeOutputShape(shape: number[]): number[] {
      return [MOMENT_ROWS, shape[position(this.axis, shape.length)]!];
    }

    call(inputs: tf.Tensor | tf.Tensor[], kwargs: { training?: boolean }): tf.Tensor {
      return tf.tidy(() => {
        const x = only(inputs);
        const axis = position(this.axis, x.rank);
        if (!kwargs.training) return tf.zeros([MOMENT_ROWS, x.shape[axis]!]); // the running ones are used
        const others = [...x.shape.keys()].filter((i) => i !== axis);
        const mean = tf.mean(x, others);
        const centered = tf.sub(x, alongAxis(mean, axis, x.rank));
        return tf.stack([mean, tf.square(mean), tf.mean(tf.square(centered), others)]);
      });
    }

    getConfig() {
      return { ...super.getConfig(), axis: this.axis };
    }
  };
}

/** `[x, moments]` to y. Without training it is tfjs-layers' own BatchNormalization. */
export function syncBatchNormalization(): LayerClass {
  const Stock = layerClass("BatchNormalization");
  return class SyncBatchNormalization extends Stock {
    static override readonly className = SYNC_BATCH_NORM;

    build(shapes: number[][]): void {
      (Stock.prototype as unknown as { build(shape: number[]): void }).build.call(this, shapes[0]!);
      (this as unknown as { inputSpec: unknown }).inputSpec = undefined; // it knows of one input
    }

    computeOutputShape(shapes: number[][]): number[] {
      return shapes[0]!;
    }

    call(inputs: tf.Tensor[], kwargs: { training?: boolean }): tf.Tensor {
      const [x, whole] = inputs as [tf.Tensor, tf.Tensor];
      const forward = context();
      if (!kwargs.training || forward === undefined) {
        return super.call(x, { ...kwargs, training: false }) as tf.Tensor;
      }
      return tf.tidy(() => {
        const layer = this as unknown as BatchNormalizationFields;
        const axis = position(layer.axis, x.rank);
        const [mean, square, within] = tf.unstack(whole) as [tf.Tensor, tf.Tensor, tf.Tensor];
        // That within the shares, and that of their means.
        const variance = tf.add(within, tf.maximum(tf.sub(square, tf.square(mean)), 0));
        const scale = tf.rsqrt(tf.add(variance, layer.epsilon));
        const along = (t: tf.Tensor) => alongAxis(t, axis, x.rank);
        const gain = layer.gamma ? tf.mul(scale, layer.gamma.read()) : scale;
        const centered = tf.mul(tf.sub(x, along(mean)), along(gain));
        const y = layer.beta ? tf.add(centered, along(layer.beta.read())) : centered;
        forward.statistics.push({ layer, mean: tf.keep(mean), variance: tf.keep(variance) });
        return y;
      });
    }
  };
}

function position(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis;
}

function alongAxis(t: tf.Tensor, axis: number, rank: number): tf.Tensor {
  const shape = new Array<number>(rank).fill(1);
  shape[axis] = t.size;
  return tf.reshape(t, shape);
}
