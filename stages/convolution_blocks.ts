/**
 * What convolutional models are put together from: layers padded and started as PyTorch's.
 *
 * Source: torchvision's `resnet.py`, whose convolutions have no bias before a batch normalization.
 * @module
 */
import { tf } from "../deps.ts";
import { KAIMING_FAN_OUT, layerSeed, LINEAR, varianceScaling } from "./initializers.ts";

/** What {@linkcode convBn} is to make. */
export interface ConvBnOptions {
  /** Seed of the model; each layer derives its own by its name. */
  readonly seed: number;
  /** The name of each layer. */
  readonly name: (part: "pad" | "conv" | "bn") => string;
  readonly filters: number;
  /** Height and width of the window: odd. */
  readonly kernelSize: number;
  /** Default 1. */
  readonly strides?: number;
}

/**
 * A convolution without bias, padded by half its window on every side, and its batch normalization. With a
 * stride, `same` would pad less before than after, unlike PyTorch; without one they are equal.
 */
export function convBn(
  input: tf.SymbolicTensor,
  { seed, name, filters, kernelSize, strides = 1 }: ConvBnOptions,
): tf.SymbolicTensor {
  const same = strides === 1;
  const x = same || kernelSize === 1 ? input : pad(input, name("pad"), (kernelSize - 1) / 2);
  const conv = tf.layers.conv2d({
    name: name("conv"),
    filters,
    kernelSize,
    strides,
    padding: same ? "same" : "valid",
    useBias: false,
    kernelInitializer: varianceScaling({ ...KAIMING_FAN_OUT, seed: layerSeed(seed, name("conv")) }),
  });
  // Keras counts what is kept of the running statistics: PyTorch's momentum of 0.1 is 0.9 here.
  const bn = tf.layers.batchNormalization({ name: name("bn"), epsilon: 1e-5, momentum: 0.9 });
  return apply(bn, apply(conv, x));
}

/** Zeros on every side. */
export function pad(x: tf.SymbolicTensor, name: string, size: number): tf.SymbolicTensor {
  return apply(tf.layers.zeroPadding2d({ name, padding: size }), x);
}

/** To half of height and width, rounding up: the largest of 3x3. For what a ReLU gives. */
export function maxPool(x: tf.SymbolicTensor, name: (part: "pad" | "pool") => string): tf.SymbolicTensor {
  // Zeros stand in for PyTorch's minus infinity: nothing that a ReLU gives is less.
  const padded = pad(x, name("pad"), 1);
  return apply(tf.layers.maxPooling2d({ name: name("pool"), poolSize: 3, strides: 2 }), padded);
}

/** A ReLU as a layer of its own. */
export function relu(x: tf.SymbolicTensor, name: string): tf.SymbolicTensor {
  return apply(tf.layers.activation({ name, activation: "relu" }), x);
}

/** The sum of two tensors. */
export function add(a: tf.SymbolicTensor, b: tf.SymbolicTensor, name: string): tf.SymbolicTensor {
  return tf.layers.add({ name }).apply([a, b]) as tf.SymbolicTensor;
}

/**
 * Where a layer with a bias starts as PyTorch's `Linear` and `Conv2d`: kernel and bias uniform up to
 * 1 / sqrt(fanIn) either way.
 *
 * @param fanIn inputs of one output
 */
export function startAsPyTorch(seed: number, name: string, fanIn: number): {
  kernelInitializer: ReturnType<typeof varianceScaling>;
  biasInitializer: ReturnType<typeof tf.initializers.randomUniform>;
} {
  const limit = 1 / Math.sqrt(fanIn);
  return {
    kernelInitializer: varianceScaling({ ...LINEAR, seed: layerSeed(seed, name) }),
    biasInitializer: tf.initializers.randomUniform({
      minval: -limit,
      maxval: limit,
      seed: layerSeed(seed, `${name}/bias`),
    }),
  };
}

/** Applies a layer of one input and one output. */
export function apply(layer: tf.layers.Layer, x: tf.SymbolicTensor): tf.SymbolicTensor {
  return layer.apply(x) as tf.SymbolicTensor;
}
