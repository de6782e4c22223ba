/**
 * Two-dimensional pooling with padding that is given in pixels, and its gradients: TensorFlow's ops know "same"
 * and "valid" alone. Images are `[batch, height, width, channels]`.
 * @module
 */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../binding/attributes.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { FLOAT, int, ints, registerFor, text } from "./kernel.ts";

type Info = tf.backend_util.Conv2DInfo;

interface PoolAttributes {
  readonly filterSize: number | [number, number];
  readonly strides: number | [number, number];
  readonly pad: "same" | "valid" | number | tf.backend_util.ExplicitPadding;
  readonly dimRoundingMode?: "floor" | "round" | "ceil";
}

/** Registers `MaxPool`, `AvgPool` and their gradients for such paddings. */
export function registerPooling(): void {
  const inPixels = (_inputs: unknown, { pad }: PoolAttributes) => typeof pad !== "string";
  registerFor(tf.MaxPool, inPixels, (backend, { x }, attrs) => {
    const info = poolInfo(x!, attrs);
    return backend.executeSingleOutput("MaxPool", attributes(info), [padded(x!, info, -Infinity)]);
  });
  registerFor(tf.MaxPoolGrad, inPixels, (backend, { dy, input, output }, attrs) => {
    const info = poolInfo(input!, attrs);
    const inputs = [padded(input!, info, -Infinity), output!, dy!];
    return inside(backend.executeSingleOutput("MaxPoolGrad", attributes(info), inputs), info);
  });
  registerFor(tf.AvgPool, inPixels, (backend, { x }, attrs) => {
    const info = poolInfo(x!, attrs);
    return tf.divNoNan(average(backend, padded(x!, info), info), shares(backend, info));
  });
  registerFor(tf.AvgPoolGrad, inPixels, (backend, { dy, input }, attrs) => {
    const info = poolInfo(input!, attrs);
    const inputs = [ints(paddedShape(info)), tf.divNoNan(dy!, shares(backend, info))];
    return inside(backend.executeSingleOutput("AvgPoolGrad", attributes(info), inputs), info);
  });
}

function poolInfo(x: tf.Tensor, { filterSize, strides, pad, dimRoundingMode }: PoolAttributes): Info {
  const shape = x.shape as [number, number, number, number];
  return tf.backend_util.computePool2DInfo(shape, filterSize, strides, 1, pad as "same", dimRoundingMode);
}

/** What part of each window's pixels lies in the image: padding does not count in an average. */
function shares(backend: NodeBackend, info: Info): tf.Tensor {
  return average(backend, padded(tf.ones([1, info.inHeight, info.inWidth, 1]), info), info);
}

function average(backend: NodeBackend, x: tf.Tensor, info: Info): tf.Tensor {
  return backend.executeSingleOutput("AvgPool", attributes(info), [x]);
}

function padded(x: tf.Tensor, info: Info, fill = 0): tf.Tensor {
  const { top, left } = info.padInfo;
  const [, height, width] = paddedShape(info) as [number, number, number, number];
  const around: [number, number][] = [[top, height - info.inHeight - top], [
    left,
    width - info.inWidth - left,
  ]];
  return tf.pad(x, [[0, 0], ...around, [0, 0]], fill);
}

/** All pixels that windows reach, and those that they do not. */
function paddedShape(info: Info): number[] {
  const { batchSize, inHeight, inWidth, inChannels, padInfo } = info;
  const height = (info.outHeight - 1) * info.strideHeight + info.filterHeight;
  const width = (info.outWidth - 1) * info.strideWidth + info.filterWidth;
  return [
    batchSize,
    Math.max(height, inHeight + padInfo.top),
    Math.max(width, inWidth + padInfo.left),
    inChannels,
  ];
}

function inside(x: tf.Tensor, { padInfo, inShape }: Info): tf.Tensor {
  return tf.slice(x, [0, padInfo.top, padInfo.left, 0], inShape);
}

function attributes(info: Info): OpAttribute[] {
  return [
    FLOAT,
    int("ksize", [1, info.filterHeight, info.filterWidth, 1]),
    int("strides", [1, info.strideHeight, info.strideWidth, 1]),
    text("padding", "VALID"),
    text("data_format", "NHWC"),
  ];
}
