/**
 * ResNet50 as PyTorch builds it, so that PyTorch's weights would give its outputs.
 *
 * Source: He et al., "Deep Residual Learning for Image Recognition", 2015, table 1; torchvision's `resnet50`
 * ("v1.5"), which has the stride on the 3x3 convolution of a block where the paper has it on the first 1x1.
 * @module
 */
import { tf } from "../deps.ts";
import {
  checkSeed,
  KAIMING_FAN_OUT,
  layerSeed,
  LINEAR,
  randomSeed,
  varianceScaling,
} from "./initializers.ts";

/** Options of `resnet50`. */
export interface ResNet50Options {
  /** `[height, width, channels]` of one image, each from 1. */
  readonly inputShape: readonly [height: number, width: number, channels: number];
  /** Units of the last layer. Default 1000, ImageNet's classes. */
  readonly classes?: number;
  /**
   * The convolution that halves height and width in the first block of groups 3 to 5: `3x3` as PyTorch
   * (default), or `1x1`, the first, as the paper and Keras.
   */
  readonly strideOn?: "3x3" | "1x1";
  /** `softmax` (default) for probabilities; `linear` for raw outputs, as PyTorch's model gives. */
  readonly activation?: "softmax" | "linear";
  /** Name of the model. Default `resnet50`. */
  readonly name?: string;
  /** An integer from 0: models of one seed have the same weights. Without one, they are drawn anew. */
  readonly seed?: number;
}

/** The groups of blocks, conv2_x to conv5_x in table 1: blocks, channels within one, stride of the first. */
const GROUPS = [
  { group: 2, blocks: 3, channels: 64, stride: 1 },
  { group: 3, blocks: 4, channels: 128, stride: 2 },
  { group: 4, blocks: 6, channels: 256, stride: 2 },
  { group: 5, blocks: 3, channels: 512, stride: 2 },
] as const;

/** A block's output has this many times the channels within it. */
const EXPANSION = 4;

/** What every part of one model needs. */
interface Builder {
  readonly seed: number;
  readonly strideOn: "3x3" | "1x1";
}

/**
 * ResNet50: `[batch, height, width, channels]` to `[batch, classes]`, with 25,557,032 trainable weights at 3
 * channels and 1000 classes. Layers are those of TensorFlow.js and have the names of Keras's ResNet50, from
 * `conv1_conv` over `conv2_block1_1_conv` to `predictions`; a shortcut's convolution has the number 0. A 3x3
 * convolution with a stride, which Keras has not, comes after `conv3_block1_2_pad` and its like.
 *
 * Height and width are halved five times, rounding up: the last block makes `[ceil(height / 32),
 * ceil(width / 32), 2048]`. Convolutions start as `KAIMING_FAN_OUT`, the last layer as PyTorch's `Linear`.
 *
 * @throws {TypeError} if an option is of a wrong type
 * @throws {RangeError} if an option has a value that it cannot have
 *
 * @example
 * ```ts
 * const model = resnet50({ inputShape: [64, 64, 3], classes: 10, seed: 1 });
 * console.log(model.countParams());
 * ```
 */
export function resnet50(options: ResNet50Options): tf.LayersModel {
  checkOptions(options);
  const { inputShape, classes = 1000, strideOn = "3x3", activation = "softmax", name = "resnet50" } = options;
  const builder = { seed: options.seed ?? randomSeed(), strideOn };
  const input = tf.input({ shape: [...inputShape], name: "input" });
  let x = stem(builder, input);
  for (const { group, blocks, channels, stride } of GROUPS) {
    for (let i = 1; i <= blocks; i++) {
      x = block(builder, x, `conv${group}_block${i}`, channels, i === 1 ? stride : 1);
    }
  }
  x = apply(tf.layers.globalAveragePooling2d({ name: "avg_pool" }), x);
  return tf.model({ inputs: input, outputs: head(builder, x, classes, activation), name });
}

/** The first convolution and the pooling: to a quarter of height and width, and 64 channels. */
function stem(builder: Builder, input: tf.SymbolicTensor): tf.SymbolicTensor {
  const x = convBn(builder, input, "conv1", { filters: 64, kernelSize: 7, strides: 2 });
  // Zeros stand in for PyTorch's minus infinity: nothing that a ReLU gives is less.
  const padded = pad(relu(x, "conv1_relu"), "pool1_pad", 1);
  return apply(tf.layers.maxPooling2d({ name: "pool1_pool", poolSize: 3, strides: 2 }), padded);
}

/** A bottleneck: 1x1 to `channels`, 3x3, 1x1 to four times as many; plus its input or a projection of it. */
function block(
  builder: Builder,
  input: tf.SymbolicTensor,
  name: string,
  channels: number,
  stride: number,
): tf.SymbolicTensor {
  const [first, second] = builder.strideOn === "1x1" ? [stride, 1] : [1, stride];
  const filters = channels * EXPANSION;
  const projects = input.shape.at(-1) !== filters;
  const shortcut = projects
    ? convBn(builder, input, `${name}_0`, { filters, kernelSize: 1, strides: stride })
    : input;
  let x = convBn(builder, input, `${name}_1`, { filters: channels, kernelSize: 1, strides: first });
  x = relu(x, `${name}_1_relu`);
  x = convBn(builder, x, `${name}_2`, { filters: channels, kernelSize: 3, strides: second });
  x = relu(x, `${name}_2_relu`);
  x = convBn(builder, x, `${name}_3`, { filters, kernelSize: 1, strides: 1 });
  const sum = tf.layers.add({ name: `${name}_add` }).apply([shortcut, x]) as tf.SymbolicTensor;
  return relu(sum, `${name}_out`);
}

function head(
  { seed }: Builder,
  x: tf.SymbolicTensor,
  classes: number,
  activation: "softmax" | "linear",
): tf.SymbolicTensor {
  const name = "predictions";
  const limit = 1 / Math.sqrt(x.shape.at(-1)!);
  const layer = tf.layers.dense({
    name,
    units: classes,
    activation,
    kernelInitializer: varianceScaling({ ...LINEAR, seed: layerSeed(seed, name) }),
    biasInitializer: tf.initializers.randomUniform({
      minval: -limit,
      maxval: limit,
      seed: layerSeed(seed, `${name}/bias`),
    }),
  });
  return apply(layer, x);
}

/**
 * A convolution without bias, padded by half its window on every side, and its batch normalization. With a
 * stride, `same` would pad less before than after, unlike PyTorch; without one they are equal.
 */
function convBn(
  { seed }: Builder,
  input: tf.SymbolicTensor,
  name: string,
  { filters, kernelSize, strides }: { filters: number; kernelSize: number; strides: number },
): tf.SymbolicTensor {
  const same = strides === 1;
  const x = same || kernelSize === 1 ? input : pad(input, `${name}_pad`, (kernelSize - 1) / 2);
  const conv = tf.layers.conv2d({
    name: `${name}_conv`,
    filters,
    kernelSize,
    strides,
    padding: same ? "same" : "valid",
    useBias: false,
    kernelInitializer: varianceScaling({ ...KAIMING_FAN_OUT, seed: layerSeed(seed, `${name}_conv`) }),
  });
  // Keras counts what is kept of the running statistics: PyTorch's momentum of 0.1 is 0.9 here.
  const bn = tf.layers.batchNormalization({ name: `${name}_bn`, epsilon: 1e-5, momentum: 0.9 });
  return apply(bn, apply(conv, x));
}

/** Zeros on every side. */
function pad(x: tf.SymbolicTensor, name: string, size: number): tf.SymbolicTensor {
  return apply(tf.layers.zeroPadding2d({ name, padding: size }), x);
}

function relu(x: tf.SymbolicTensor, name: string): tf.SymbolicTensor {
  return apply(tf.layers.activation({ name, activation: "relu" }), x);
}

function apply(layer: tf.layers.Layer, x: tf.SymbolicTensor): tf.SymbolicTensor {
  return layer.apply(x) as tf.SymbolicTensor;
}

function checkOptions(options: ResNet50Options): void {
  const known = ["inputShape", "classes", "strideOn", "activation", "name", "seed"];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(
      `Cannot build ResNet50: expected some of ${known.join(", ")}: got "${unknown}"; leave it out`,
    );
  }
  const { inputShape, classes = 1000, strideOn = "3x3", activation = "softmax", name = "resnet50" } = options;
  if (!Array.isArray(inputShape) || inputShape.length !== 3) {
    throw new TypeError(
      `Cannot build ResNet50: expected "inputShape" to be [height, width, channels], without the batch: ` +
        `got ${show(inputShape)}; give the size of the images, as in [224, 224, 3]`,
    );
  }
  inputShape.forEach((size, axis) => {
    const what = ["height", "width", "channels"][axis];
    checkCount(size, `the ${what} of "inputShape"`, `give the size of the images, as in [224, 224, 3]`);
  });
  checkCount(classes, `"classes"`, "give the number of the model's outputs");
  checkChoice(strideOn, "strideOn", ["3x3", "1x1"], `"3x3" is PyTorch's, "1x1" Keras's`);
  checkChoice(activation, "activation", ["softmax", "linear"], `take "linear" and add a layer for another`);
  if (classes === 1 && activation === "softmax") {
    throw new RangeError(
      `Cannot build ResNet50: expected "classes" from 2 with activation "softmax", which is always 1 on ` +
        `one output: got 1; take activation "linear" or 2 classes`,
    );
  }
  if (typeof name !== "string" || name === "") {
    throw new TypeError(
      `Cannot build ResNet50: expected "name" to be a string of a character or more: got ${show(name)}`,
    );
  }
  if (options.seed !== undefined) checkSeed(options.seed);
}

function checkCount(value: unknown, what: string, remedy: string): void {
  if (typeof value !== "number") {
    throw new TypeError(
      `Cannot build ResNet50: expected ${what} to be a number: got ${show(value)}; ${remedy}`,
    );
  }
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(
      `Cannot build ResNet50: expected ${what} to be an integer from 1: got ${value}; ${remedy}`,
    );
  }
}

function checkChoice(value: unknown, what: string, choices: readonly string[], remedy: string): void {
  if (choices.includes(value as string)) return;
  const expected = choices.map((choice) => `"${choice}"`).join(" or ");
  throw new RangeError(
    `Cannot build ResNet50: expected "${what}" ${expected}: got ${show(value)}; ${remedy}`,
  );
}

/** A value as a person would write it. */
function show(value: unknown): string {
  return typeof value === "object" || typeof value === "string" ? JSON.stringify(value) : String(value);
}
