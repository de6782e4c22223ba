/** Models with skips, several inputs and several outputs, and a batch for each, the same at every call. */
import { tf } from "../../deps.ts";

/** Samples in each batch. */
export const BATCH = 5;

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;

const seeded = (seed: number) => tf.initializers.glorotUniform({ seed });
// From zero, a bias would be its gradient's rounding alone.
const biasInitializer = () => tf.initializers.randomUniform({ minval: 0.2, maxval: 0.4, seed: 1 });
const conv = (name: string, filters: number, seed: number, strides = 1) =>
  L.conv2d({
    name,
    filters,
    kernelSize: 3,
    strides,
    padding: "same",
    activation: "tanh",
    kernelInitializer: seeded(seed),
    biasInitializer: biasInitializer(),
  });

/** Two levels down and up again, with a skip at each. */
export function smallUnet(): tf.LayersModel {
  const input = tf.input({ shape: [8, 8, 2] });
  const a = conv("a", 3, 1).apply(input);
  const b = conv("b", 4, 2, 2).apply(a);
  const c = conv("c", 4, 3, 2).apply(b);
  const up1 = L.upSampling2d({ name: "up1", size: [2, 2] }).apply(c);
  const d = conv("d", 3, 4).apply(L.concatenate({ name: "join1" }).apply([up1, b]));
  const up0 = L.upSampling2d({ name: "up0", size: [2, 2] }).apply(d);
  const e = conv("e", 1, 5).apply(L.concatenate({ name: "join0" }).apply([up0, a]));
  return tf.model({ inputs: input, outputs: e as tf.SymbolicTensor, name: "small_unet" });
}

/** Two inputs, two outputs, a tensor needed in four places, and one whose last consumer lets no gradient through. */
function branchedNet(): tf.LayersModel {
  const [left, right] = [tf.input({ shape: [5], name: "left" }), tf.input({ shape: [3], name: "right" })];
  const dense = (name: string, units: number, seed: number) =>
    L.dense({
      name,
      units,
      activation: "tanh",
      kernelInitializer: seeded(seed),
      biasInitializer: biasInitializer(),
    });
  const trunk = dense("trunk", 4, 1).apply(left);
  const one = dense("one", 4, 2).apply(trunk);
  const two = dense("two", 4, 3).apply(L.concatenate({ name: "with_right" }).apply([one, right]));
  const sum = L.add({ name: "sum" }).apply([two, trunk]);
  const three = dense("three", 4, 4).apply(sum);
  // The sign of a number has a gradient of zero.
  const sign = L.thresholdedReLU({ name: "dropped", theta: 100 }).apply(one);
  const late = L.concatenate({ name: "late" }).apply([three, trunk, right, sign]);
  return tf.model({
    inputs: [left, right],
    outputs: [dense("end", 2, 5).apply(late), dense("side", 1, 6).apply(two)],
    name: "branched_net",
  });
}

/** A model with a batch for it. */
export interface Example {
  readonly make: () => tf.LayersModel;
  readonly x: tf.Tensor[];
  readonly y: tf.Tensor[];
}

const normal = (shape: number[], seed: number) => tf.randomNormal(shape, 0, 1, "float32", seed);
/** The small U-Net. */
export const UNET: Example = {
  make: smallUnet,
  x: [normal([BATCH, 8, 8, 2], 1)],
  y: [normal([BATCH, 8, 8, 1], 2)],
};
/** The branched net. */
export const BRANCHED: Example = {
  make: branchedNet,
  x: [normal([BATCH, 5], 3), normal([BATCH, 3], 4)],
  y: [normal([BATCH, 2], 5), normal([BATCH, 1], 6)],
};
