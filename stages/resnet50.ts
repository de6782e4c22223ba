/**
 * ResNet50 as PyTorch builds it, so that PyTorch's weights would give its outputs.
 *
 * Source: He et al., "Deep Residual Learning for Image Recognition", 2015, table 1; torchvision's `resnet50`
 * ("v1.5"), which has the stride on the 3x3 convolution of a block where the paper has it on the first 1x1.
 * @module
 */
import { tf } from "../deps.ts";
import { add, apply, convBn, maxPool, relu, startAsPyTorch } from "./convolution_blocks.ts";
import { checkSeed, randomSeed } from "./initializers.ts";
import { checkChoice, checkCount, checkInputShape, checkKnown, checkName } from "./model_options.ts";

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

/** Its name in errors. */
const MODEL = "ResNet50";

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
function stem({ seed }: Builder, input: tf.SymbolicTensor): tf.SymbolicTensor {
  const name = (part: string) => `conv1_${part}`;
  const x = convBn(input, { seed, name, filters: 64, kernelSize: 7, strides: 2 });
  return maxPool(relu(x, name("relu")), (part) => `pool1_${part}`);
}

/** A bottleneck: 1x1 to `channels`, 3x3, 1x1 to four times as many; plus its input or a projection of it. */
function block(
  { seed, strideOn }: Builder,
  input: tf.SymbolicTensor,
  name: string,
  channels: number,
  stride: number,
): tf.SymbolicTensor {
  const [first, second] = strideOn === "1x1" ? [stride, 1] : [1, stride];
  const filters = channels * EXPANSION;
  const conv = (x: tf.SymbolicTensor, i: number, filters: number, kernelSize: number, strides: number) =>
    convBn(x, { seed, name: (part) => `${name}_${i}_${part}`, filters, kernelSize, strides });
  const projects = input.shape.at(-1) !== filters;
  const shortcut = projects ? conv(input, 0, filters, 1, stride) : input;
  let x = relu(conv(input, 1, channels, 1, first), `${name}_1_relu`);
  x = relu(conv(x, 2, channels, 3, second), `${name}_2_relu`);
  x = conv(x, 3, filters, 1, 1);
  return relu(add(shortcut, x, `${name}_add`), `${name}_out`);
}

function head(
  { seed }: Builder,
  x: tf.SymbolicTensor,
  classes: number,
  activation: "softmax" | "linear",
): tf.SymbolicTensor {
  const name = "predictions";
  const start = startAsPyTorch(seed, name, x.shape.at(-1)!);
  return apply(tf.layers.dense({ name, units: classes, activation, ...start }), x);
}

function checkOptions(options: ResNet50Options): void {
  checkKnown(MODEL, options, ["inputShape", "classes", "strideOn", "activation", "name", "seed"]);
  const { inputShape, classes = 1000, strideOn = "3x3", activation = "softmax", name = "resnet50" } = options;
  checkInputShape(MODEL, inputShape);
  checkCount(MODEL, classes, `"classes"`, "give the number of the model's outputs");
  checkChoice(MODEL, strideOn, "strideOn", {
    choices: ["3x3", "1x1"],
    remedy: `"3x3" is PyTorch's, "1x1" Keras's`,
  });
  checkChoice(MODEL, activation, "activation", {
    choices: ["softmax", "linear"],
    remedy: `take "linear" and add a layer for another`,
  });
  if (classes === 1 && activation === "softmax") {
    throw new RangeError(
      `Cannot build ${MODEL}: expected "classes" from 2 with activation "softmax", which is always 1 on ` +
        `one output: got 1; take activation "linear" or 2 classes`,
    );
  }
  checkName(MODEL, name);
  if (options.seed !== undefined) checkSeed(options.seed);
}
