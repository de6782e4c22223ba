/**
 * `BatchNormalization` that normalizes a micro-batch and leaves its statistics with the stage, which updates
 * the running ones once per batch. tfjs-layers' own writes them at every forward.
 * @module
 */
import { tf } from "../../deps.ts";
import { context, type RunningStatistics } from "../context.ts";
import { hasKernel, type LayerClass, layerClass, type LayerVariable, runKernel } from "../tfjs.ts";
import { BATCH_NORM } from "./batch_norm_kernel.ts";
import { only } from "./only.ts";

/** The fields that a stage reads of a BatchNormalization layer. */
export interface BatchNormalizationFields extends RunningStatistics {
  readonly axis: number;
  readonly epsilon: number;
  readonly gamma: LayerVariable | undefined;
  readonly beta: LayerVariable | undefined;
}

/** The class that stands in for tfjs-layers' `BatchNormalization`. */
export function batchNormalization(): LayerClass {
  const Stock = layerClass("BatchNormalization");
  return class BatchNormalization extends Stock {
    static override readonly className = "BatchNormalization";

    call(inputs: tf.Tensor | tf.Tensor[], kwargs: { training?: boolean }): tf.Tensor {
      const forward = context();
      if (!kwargs.training || forward === undefined) {
        return super.call(inputs, { ...kwargs, training: false });
      }
      return tf.tidy(() => {
        const fields = this as unknown as BatchNormalizationFields;
        const [y, mean, variance] = normalize(only(inputs), fields);
        // The statistics outlive this tidy: the stage accumulates them.
        forward.statistics.push({ layer: fields, mean: tf.keep(mean), variance: tf.keep(variance) });
        return y;
      });
    }
  };
}

/** Normalizes over all axes but one. @returns y, and the mean and biased variance of x, `[channels]` */
function normalize(x: tf.Tensor, layer: BatchNormalizationFields): [tf.Tensor, tf.Tensor, tf.Tensor] {
  const axis = layer.axis < 0 ? layer.axis + x.rank : layer.axis;
  const channels = x.shape[axis]!;
  if (axis !== x.rank - 1) {
    const last = [...x.shape.keys()].filter((i) => i !== axis).concat(axis);
    const [y, mean, variance] = normalizeLast(tf.transpose(x, last), channels, layer);
    const back = last.map((_, i) => last.indexOf(i));
    return [tf.transpose(y, back), mean, variance];
  }
  return normalizeLast(x, channels, layer);
}

function normalizeLast(
  x: tf.Tensor,
  channels: number,
  layer: BatchNormalizationFields,
): [tf.Tensor, tf.Tensor, tf.Tensor] {
  const scale = layer.gamma?.read() ?? tf.ones([channels]);
  const offset = layer.beta?.read() ?? tf.zeros([channels]);
  if (!hasKernel(BATCH_NORM)) return normalizeByOps(x, scale, offset, layer.epsilon);
  const image = x.rank === 4 ? x : tf.reshape(x, [-1, 1, 1, channels]);
  const [y, mean, variance] = runKernel(BATCH_NORM, { x: image, scale, offset }, { epsilon: layer.epsilon });
  return [x.rank === 4 ? y! : tf.reshape(y!, x.shape), mean!, variance!];
}

/** The same from plain ops, for engines without the kernel. */
function normalizeByOps(
  x: tf.Tensor,
  scale: tf.Tensor,
  offset: tf.Tensor,
  epsilon: number,
): [tf.Tensor, tf.Tensor, tf.Tensor] {
  const axes = [...x.shape.keys()].slice(0, -1);
  const mean = tf.mean(x, axes);
  const centered = tf.sub(x, mean);
  const variance = tf.mean(tf.square(centered), axes);
  const y = tf.add(tf.mul(centered, tf.mul(scale, tf.rsqrt(tf.add(variance, epsilon)))), offset);
  return [y, mean, variance];
}
