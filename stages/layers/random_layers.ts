/**
 * The layers of tfjs-layers that draw random numbers, drawing them from the stage's random source: the same
 * masks whatever the partition, the micro-batches and the device.
 * @module
 */
import { tf } from "../../deps.ts";
import { context } from "../context.ts";
import { type LayerClass, layerClass } from "../tfjs.ts";
import { only } from "./only.ts";

type Inputs = tf.Tensor | tf.Tensor[];

/** Fields that the layers below have, each its own part. */
interface RandomFields {
  readonly name: string;
  readonly rate: number;
  readonly stddev: number;
  readonly noiseShape?: (number | null)[] | null;
  getNoiseShape(x: tf.Tensor): number[] | null | undefined;
}

/** The classes that stand in for tfjs-layers' own. */
export function randomLayers(): LayerClass[] {
  const dropout = replace("Dropout", (x, layer) => {
    if (!(layer.rate > 0 && layer.rate < 1)) return x;
    const shape = layer.getNoiseShape(x) ?? x.shape;
    const keep = tf.greaterEqual(uniform(layer, shape, x), layer.rate);
    return tf.mul(x, tf.mul(tf.cast(keep, "float32"), 1 / (1 - layer.rate)));
  });
  const spatialDropout1d = replace("SpatialDropout1D", (x, layer) => {
    if (!(layer.rate > 0 && layer.rate < 1)) return x;
    const keep = tf.greaterEqual(uniform(layer, [x.shape[0]!, 1, x.shape[2]!], x), layer.rate);
    return tf.mul(x, tf.mul(tf.cast(keep, "float32"), 1 / (1 - layer.rate)));
  });
  const gaussianNoise = replace(
    "GaussianNoise",
    (x, layer) => tf.add(x, tf.mul(normal(layer, x), layer.stddev)),
  );
  const gaussianDropout = replace("GaussianDropout", (x, layer) => {
    if (!(layer.rate > 0 && layer.rate < 1)) return x;
    return tf.mul(x, tf.add(tf.mul(normal(layer, x), Math.sqrt(layer.rate / (1 - layer.rate))), 1));
  });
  const alphaDropout = replace("AlphaDropout", (x, layer) => {
    if (!(layer.rate > 0 && layer.rate < 1)) return x;
    // Klambauer et al., "Self-Normalizing Neural Networks", 2017: the value that dropped units take.
    const alphaP = -1.6732632423543772 * 1.0507009873554805;
    const a = ((1 - layer.rate) * (1 + layer.rate * alphaP ** 2)) ** -0.5;
    const shape = (layer.noiseShape ?? x.shape).map((dim, i) => dim ?? x.shape[i]!);
    const kept = tf.cast(tf.greaterEqual(uniform(layer, shape, x), layer.rate), "float32");
    const dropped = tf.mul(tf.sub(1, kept), alphaP);
    return tf.add(tf.mul(tf.add(tf.mul(x, kept), dropped), a), -a * alphaP * layer.rate);
  });
  return [dropout, spatialDropout1d, gaussianNoise, gaussianDropout, alphaDropout];
}

function replace(name: string, train: (x: tf.Tensor, layer: RandomFields) => tf.Tensor): LayerClass {
  return class extends layerClass(name) {
    static override readonly className = name;

    call(inputs: Inputs, kwargs: { training?: boolean }): tf.Tensor {
      if (!kwargs.training || context() === undefined) return super.call(inputs, kwargs) as tf.Tensor;
      return tf.tidy(() => train(only(inputs), this as unknown as RandomFields));
    }
  };
}

/** A noise shape whose first axis is not left to the samples is drawn once for all of them. */
function uniform(layer: RandomFields, shape: number[], x: tf.Tensor): tf.Tensor {
  const { random } = context()!;
  const perSample = (layer.noiseShape?.[0] ?? null) === null;
  if (perSample && shape.length === x.rank) return random.uniform(layer.name, shape);
  return tf.reshape(random.uniform(layer.name, [1, ...shape], true), shape);
}

/** Standard normal numbers of x's shape by the Box-Muller transform. */
function normal(layer: RandomFields, x: tf.Tensor): tf.Tensor {
  const [samples, ...rest] = x.shape;
  const size = rest.reduce((a, b) => a * b, 1);
  const both = context()!.random.uniform(layer.name, [samples!, 2 * size]);
  const u = tf.slice(both, [0, 0], [samples!, size]);
  const angle = tf.mul(tf.slice(both, [0, size], [samples!, size]), 2 * Math.PI);
  // 1 - u lies in (0, 1], whose logarithm is finite.
  const radius = tf.sqrt(tf.mul(tf.log(tf.sub(1, u)), -2));
  return tf.reshape(tf.mul(radius, tf.cos(angle)), x.shape);
}
