/** Images `[batch, height, width, channels]` around a convolution of theirs. @module */
import { tf } from "../../../deps.ts";

/** How a convolution goes over its input. */
export type Info = tf.backend_util.Conv2DInfo;

/** Attributes that convolutions and their gradients share. */
export interface ConvolutionAttributes {
  readonly strides: number | [number, number];
  readonly pad: "same" | "valid" | number | tf.backend_util.ExplicitPadding;
  readonly dataFormat?: "NHWC" | "NCHW";
  readonly dilations?: number | [number, number] | null;
  readonly dimRoundingMode?: "floor" | "round" | "ceil";
}

/** Sizes, strides and padding. @throws {RangeError} for channels first, which the backend has nowhere */
export function convolutionInfo(
  inputShape: number[],
  filterShape: number[],
  { strides, pad, dataFormat, dilations, dimRoundingMode }: ConvolutionAttributes,
  depthwise = false,
): Info {
  if (dataFormat === "NCHW") {
    throw new RangeError(`Cannot convolve images of format "NCHW" on engine "wasm": expected "NHWC"`);
  }
  return tf.backend_util.computeConv2DInfo(
    inputShape as [number, number, number, number],
    filterShape as [number, number, number, number],
    strides,
    dilations ?? 1,
    pad as "same",
    dimRoundingMode,
    depthwise,
  );
}

/** Attributes that poolings and their gradients share. */
export type PoolAttributes = Pick<ConvolutionAttributes, "strides" | "pad" | "dimRoundingMode"> & {
  readonly filterSize: number | [number, number];
};

/** Sizes, strides and padding of a pooling. */
export function poolInfo(
  inputShape: number[],
  { filterSize, strides, pad, dimRoundingMode }: PoolAttributes,
): Info {
  return tf.backend_util.computePool2DInfo(
    inputShape as [number, number, number, number],
    filterSize,
    strides,
    1,
    pad as "same",
    dimRoundingMode,
  );
}

/** Where a window lies in an image, in pixels; parts of it outside of the image are zeros. */
export interface Window {
  readonly top: number;
  readonly left: number;
  readonly height: number;
  readonly width: number;
}

/** Cuts a window out of each image: cropped where it lies within, filled up where it does not. */
export function cut(x: tf.Tensor, { top, left, height, width }: Window, fill = 0): tf.Tensor4D {
  const [batch, inHeight, inWidth, channels] = x.shape as [number, number, number, number];
  const rows = overlap(top, height, inHeight);
  const columns = overlap(left, width, inWidth);
  const inside = rows.size === inHeight && columns.size === inWidth
    ? x
    : tf.slice(x, [0, rows.begin, columns.begin, 0], [batch, rows.size, columns.size, channels]);
  const around: [number, number][] = [[0, 0], rows.around, columns.around, [0, 0]];
  return (around.flat().some((pad) => pad > 0) ? tf.pad(inside, around, fill) : inside) as tf.Tensor4D;
}

/** The part of a window's axis that lies within the image's, and what is missing before and after it. */
function overlap(start: number, length: number, size: number) {
  const begin = Math.min(Math.max(start, 0), size);
  const end = Math.min(Math.max(start + length, begin), size);
  const before = Math.min(begin - start, length);
  return { begin, size: end - begin, around: [before, length - before - (end - begin)] as [number, number] };
}

/** The pixels of the input that a filter goes over: with its padding, without those that it never reaches. */
export function covered(x: tf.Tensor, info: Info, fill = 0): tf.Tensor4D {
  return cut(x, {
    top: -info.padInfo.top,
    left: -info.padInfo.left,
    height: (info.outHeight - 1) * info.strideHeight + info.effectiveFilterHeight,
    width: (info.outWidth - 1) * info.strideWidth + info.effectiveFilterWidth,
  }, fill);
}

/** The pixels that one position of the filter meets, `[batch, outHeight, outWidth, channels]`. */
export function met(pixels: tf.Tensor, row: number, column: number, info: Info): tf.Tensor {
  const [top, left] = [row * info.dilationHeight, column * info.dilationWidth];
  const [height, width] = [
    (info.outHeight - 1) * info.strideHeight + 1,
    (info.outWidth - 1) * info.strideWidth + 1,
  ];
  return everyNth(cut(pixels, { top, left, height, width }), info);
}

/** Gradients of the pixels that one position of the filter met, at their places in the input. */
export function returned(gradients: tf.Tensor, row: number, column: number, info: Info): tf.Tensor4D {
  return cut(apart(gradients, info), {
    top: info.padInfo.top - row * info.dilationHeight,
    left: info.padInfo.left - column * info.dilationWidth,
    height: info.inHeight,
    width: info.inWidth,
  });
}

/** Every pixel that is a multiple of the stride. */
export function everyNth(x: tf.Tensor, { strideHeight, strideWidth }: Info): tf.Tensor {
  if (strideHeight === 1 && strideWidth === 1) return x;
  return tf.stridedSlice(x, [0, 0, 0, 0], x.shape, [1, strideHeight, strideWidth, 1]);
}

/** Puts zeros between pixels, so that they lie a stride apart: the counterpart of `everyNth`. */
export function apart(x: tf.Tensor, { strideHeight, strideWidth }: Info): tf.Tensor {
  if (strideHeight === 1 && strideWidth === 1) return x;
  const [batch, height, width, channels] = x.shape as [number, number, number, number];
  const columns = tf.pad(tf.reshape(x, [batch * height * width, 1, channels]), [
    [0, 0],
    [0, strideWidth - 1],
    [0, 0],
  ]);
  const row = width * strideWidth * channels;
  const rows = tf.pad(tf.reshape(columns, [batch * height, 1, row]), [[0, 0], [0, strideHeight - 1], [0, 0]]);
  return tf.reshape(rows, [batch, height * strideHeight, width * strideWidth, channels]);
}

/**
 * Output gradients placed so that a convolution of stride 1 over them, with the filter turned around, gives
 * the input's gradients.
 */
export function placed(dy: tf.Tensor, info: Info): tf.Tensor4D {
  return cut(apart(dy, info), {
    top: info.padInfo.top - (info.effectiveFilterHeight - 1),
    left: info.padInfo.left - (info.effectiveFilterWidth - 1),
    height: info.inHeight + info.effectiveFilterHeight - 1,
    width: info.inWidth + info.effectiveFilterWidth - 1,
  });
}

/** Whether each output pixel sees one input pixel and no padding counts. */
export function isPointwise({ filterHeight, filterWidth, padInfo }: Info): boolean {
  const { top, bottom, left, right } = padInfo;
  return filterHeight === 1 && filterWidth === 1 && top + bottom + left + right === 0;
}

/** Gradients of the pixels that a convolution makes: a transposed one may be given more. */
export function outputPixels(dy: tf.Tensor, { outHeight, outWidth }: Info): tf.Tensor4D {
  return cut(dy, { top: 0, left: 0, height: outHeight, width: outWidth });
}

/** Pixels as rows, `[pixels, channels]`. */
export function rows(x: tf.Tensor): tf.Tensor2D {
  return tf.reshape(x, [-1, x.shape[x.rank - 1]!]);
}
