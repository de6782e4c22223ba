/**
 * U-Net with a ResNet34 as its encoder, as PyTorch builds it, so that PyTorch's weights would give its outputs.
 *
 * Sources: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015; He et
 * al., "Deep Residual Learning for Image Recognition", 2015, table 1, for the encoder, which is torchvision's
 * `resnet34` without its last two layers; segmentation_models.pytorch's `Unet` for the decoder.
 * @module
 */
import { tf } from "../deps.ts";
import { add, apply, convBn, maxPool, relu, startAsPyTorch } from "./convolution_blocks.ts";
import { checkSeed, randomSeed } from "./initializers.ts";
import { checkCount, checkInputShape, checkKnown, checkName } from "./model_options.ts";

/** Options of `unet`. */
export interface UNetOptions {
  /** `[height, width, channels]` of one image: height and width multiples of 32, channels from 1. */
  readonly inputShape: readonly [height: number, width: number, channels: number];
  /** Masks, and so logits of each pixel. Default 1. */
  readonly classes?: number;
  /** Name of the model. Default `unet`. */
  readonly name?: string;
  /** An integer from 0: models of one seed have the same weights. Without one, they are drawn anew. */
  readonly seed?: number;
}

/**
 * The blocks, in the order of the forward. The name of each layer is its block's, or begins with that and `_`;
 * the layers of a block lie together.
 */
export const UNET_BLOCKS = [
  "stem",
  "encoder1",
  "encoder2",
  "encoder3",
  "encoder4",
  "decoder4",
  "decoder3",
  "decoder2",
  "decoder1",
  "decoder0",
  "head",
] as const;

/** Name of a block of the model that `unet` makes. */
export type UNetBlock = typeof UNET_BLOCKS[number];

/** ResNet34's groups of basic blocks: how many, their channels, stride of the first. */
const ENCODER = [
  { name: "encoder1", blocks: 3, channels: 64, stride: 1 },
  { name: "encoder2", blocks: 4, channels: 128, stride: 2 },
  { name: "encoder3", blocks: 6, channels: 256, stride: 2 },
  { name: "encoder4", blocks: 3, channels: 512, stride: 2 },
] as const;

/** The decoder: whose output each block takes beside the one before it, and its channels. */
const DECODER = [
  { name: "decoder4", skip: "encoder3", channels: 256 },
  { name: "decoder3", skip: "encoder2", channels: 128 },
  { name: "decoder2", skip: "encoder1", channels: 64 },
  { name: "decoder1", skip: "stem", channels: 32 },
  { name: "decoder0", skip: undefined, channels: 16 },
] as const;

/** How often height and width are halved, and doubled again. */
const HALVINGS = 5;

/** Its name in errors. */
const MODEL = "U-Net";

/**
 * U-Net: `[batch, height, width, channels]` to one logit per pixel and class, `[batch, height, width,
 * classes]`, with 24,436,369 trainable weights at 3 channels and 1 class. Layers are those of TensorFlow.js.
 *
 * - `stem`: 7x7 convolution with stride 2, whose result is the first skip, and max pooling
 * - `encoder1` to `encoder4`: 3, 4, 6 and 3 basic blocks of 64, 128, 256 and 512 channels
 * - `decoder4` to `decoder0`: nearest up-sampling by 2, concatenation with the encoder's output of that size
 *   (none for the last), two 3x3 convolutions of 256, 128, 64, 32 and 16 channels
 * - `head`: 3x3 convolution with bias
 *
 * Convolutions before a batch normalization start as `KAIMING_FAN_OUT`, the head's as PyTorch's `Conv2d`.
 *
 * @throws {TypeError} if an option is of a wrong type
 * @throws {RangeError} if an option has a value that it cannot have
 *
 * @example
 * ```ts
 * const model = unet({ inputShape: [64, 64, 3], seed: 1 });
 * console.log(model.countParams());
 * ```
 */
export function unet(options: UNetOptions): tf.LayersModel {
  checkOptions(options);
  const { inputShape, classes = 1, name = "unet", seed = randomSeed() } = options;
  const input = tf.input({ shape: [...inputShape], name: "input" });
  const skips = new Map<string, tf.SymbolicTensor>();
  let x = stem(seed, input);
  skips.set("stem", x);
  x = maxPool(x, (part) => part === "pool" ? "stem_pool" : "stem_pool_pad");
  for (const { name, blocks, channels, stride } of ENCODER) {
    for (let i = 1; i <= blocks; i++) {
      x = basicBlock(seed, x, `${name}_block${i}`, channels, i === 1 ? stride : 1);
    }
    skips.set(name, x);
  }
  for (const { name, skip, channels } of DECODER) {
    x = decoderBlock(seed, x, name, channels, skip && skips.get(skip));
  }
  return tf.model({ inputs: input, outputs: head(seed, x, classes), name });
}

/** The first convolution: to half of height and width, and 64 channels. */
function stem(seed: number, input: tf.SymbolicTensor): tf.SymbolicTensor {
  const name = (part: string) => `stem_${part}`;
  return relu(convBn(input, { seed, name, filters: 64, kernelSize: 7, strides: 2 }), name("relu"));
}

/** Two 3x3 convolutions, plus the input or a projection of it. */
function basicBlock(
  seed: number,
  input: tf.SymbolicTensor,
  name: string,
  filters: number,
  stride: number,
): tf.SymbolicTensor {
  const conv = (x: tf.SymbolicTensor, i: number, strides: number) =>
    convBn(x, { seed, name: (part) => `${name}_${part}${i}`, filters, kernelSize: 3, strides });
  const projects = input.shape.at(-1) !== filters;
  const shortcut = projects
    ? convBn(input, {
      seed,
      name: (part) => `${name}_shortcut_${part}`,
      filters,
      kernelSize: 1,
      strides: stride,
    })
    : input;
  const x = conv(relu(conv(input, 1, stride), `${name}_relu1`), 2, 1);
  return relu(add(shortcut, x, `${name}_add`), `${name}_relu2`);
}

/** To twice the height and width, beside the encoder's output of that size, and two 3x3 convolutions. */
function decoderBlock(
  seed: number,
  input: tf.SymbolicTensor,
  name: string,
  filters: number,
  skip?: tf.SymbolicTensor,
): tf.SymbolicTensor {
  let x = apply(
    tf.layers.upSampling2d({ name: `${name}_up`, size: [2, 2], interpolation: "nearest" }),
    input,
  );
  if (skip) x = tf.layers.concatenate({ name: `${name}_concat` }).apply([x, skip]) as tf.SymbolicTensor;
  for (const i of [1, 2]) {
    x = convBn(x, { seed, name: (part) => `${name}_${part}${i}`, filters, kernelSize: 3 });
    x = relu(x, `${name}_relu${i}`);
  }
  return x;
}

/** A logit for each pixel and class. */
function head(seed: number, x: tf.SymbolicTensor, classes: number): tf.SymbolicTensor {
  const name = "head";
  const start = startAsPyTorch(seed, name, 3 * 3 * x.shape.at(-1)!);
  return apply(tf.layers.conv2d({ name, filters: classes, kernelSize: 3, padding: "same", ...start }), x);
}

function checkOptions(options: UNetOptions): void {
  checkKnown(MODEL, options, ["inputShape", "classes", "name", "seed"]);
  const { inputShape, classes = 1, name = "unet", seed } = options;
  checkInputShape(MODEL, inputShape);
  const step = 2 ** HALVINGS;
  for (const [axis, what] of [[0, "height"], [1, "width"]] as const) {
    const size = inputShape[axis];
    if (size % step === 0) continue;
    const [below, above] = [Math.floor(size / step) * step, Math.ceil(size / step) * step];
    throw new RangeError(
      `Cannot build ${MODEL}: expected the ${what} of "inputShape" to be a multiple of ${step}, since it is ` +
        `halved ${HALVINGS} times: got ${size}; resize or pad the images to ` +
        (below === 0 ? `${above}` : `${below} or ${above}`),
    );
  }
  checkCount(MODEL, classes, `"classes"`, "give the number of masks of an image");
  checkName(MODEL, name);
  if (seed !== undefined) checkSeed(seed);
}
