/**
 * Two-dimensional convolution and its gradients for the backend "tensorflow": TensorFlow's ops with every
 * padding, or matrix products where `lowering` says so. Images are `[batch, height, width, channels]`, filters
 * `[height, width, in, out]`.
 * @module
 */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../binding/attributes.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { bool, FLOAT, int, ints, register, text } from "./kernel.ts";
import { insideFilterGradient, insideForward, insideInputGradient } from "./inside.ts";
import { lowering } from "./lowering.ts";
import { everyNth, fromPatches, patches, rows, spread, taps } from "./pixels.ts";

type Info = tf.backend_util.Conv2DInfo;

/** Registers `Conv2D` and its two gradients. */
export function registerConvolution(): void {
  register(tf.Conv2D, (backend, { x, filter }, attrs) => {
    const info = conv2dInfo(x!.shape, filter!.shape, attrs);
    return forward(backend, x!, filter!, info);
  });
  register(tf.Conv2DBackpropInput, (backend, { dy, filter }, attrs) => {
    const info = conv2dInfo(attrs.inputShape, filter!.shape, attrs);
    // A transposed convolution may be given more pixels than the convolution makes.
    const given = tf.util.arraysEqual(dy!.shape, info.outShape)
      ? dy!
      : tf.slice(dy!, [0, 0, 0, 0], info.outShape);
    return inputGradient(backend, given, filter!, info);
  });
  register(tf.Conv2DBackpropFilter, (backend, { x, dy }, attrs) => {
    const info = conv2dInfo(x!.shape, attrs.filterShape, attrs);
    return filterGradient(backend, x!, dy!, info);
  });
}

interface Conv2DAttributes {
  readonly strides: number | [number, number];
  readonly pad: "same" | "valid" | number | tf.backend_util.ExplicitPadding;
  readonly dataFormat: "NHWC" | "NCHW";
  readonly dilations?: number | [number, number];
  readonly dimRoundingMode?: "floor" | "round" | "ceil";
}

function conv2dInfo(xShape: number[], filterShape: number[], attrs: Conv2DAttributes): Info {
  return tf.backend_util.computeConv2DInfo(
    xShape as [number, number, number, number],
    filterShape as [number, number, number, number],
    attrs.strides,
    attrs.dilations ?? 1,
    attrs.pad as "same",
    attrs.dimRoundingMode,
    false,
    tf.backend_util.convertConv2DDataFormat(attrs.dataFormat),
  );
}

function forward(backend: NodeBackend, x: tf.Tensor, filter: tf.Tensor, info: Info): tf.Tensor {
  const product = (input: tf.Tensor) =>
    tf.reshape(matmul(backend, input, tf.reshape(filter, [-1, info.outChannels])), info.outShape);
  switch (lowering(info, "forward")) {
    case "matmul":
      return product(rows(everyNth(x, info)));
    case "im2col":
      return product(patches(backend, x, info));
    case "inside":
      return insideForward(x, filter, info, multiplier(backend));
    default:
      return withPadding(
        info,
        x,
        (padded) => backend.executeSingleOutput("Conv2D", attributes(info), [padded, filter]),
      );
  }
}

function inputGradient(backend: NodeBackend, dy: tf.Tensor, filter: tf.Tensor, info: Info): tf.Tensor {
  const product = () => matmul(backend, rows(dy), tf.reshape(filter, [-1, info.outChannels]), false, true);
  switch (lowering(info, "inputGradient")) {
    case "matmul":
      return spread(backend, tf.reshape(product(), [...info.outShape.slice(0, 3), info.inChannels]), info);
    case "im2col":
      return fromPatches(product(), info);
    case "inside":
      return insideInputGradient(dy, filter, info, multiplier(backend));
    default: {
      const { top, left } = info.padInfo;
      const explicit = isExplicit(info);
      const shape = explicit ? paddedShape(info) : info.inShape;
      const inputs = [ints(shape), filter, dy];
      const dx = backend.executeSingleOutput("Conv2DBackpropInput", attributes(info), inputs);
      if (!explicit) return dx;
      const first = info.dataFormat === "channelsLast" ? [0, top, left, 0] : [0, 0, top, left];
      return tf.slice(dx, first, info.inShape);
    }
  }
}

function filterGradient(backend: NodeBackend, x: tf.Tensor, dy: tf.Tensor, info: Info): tf.Tensor {
  const product = (input: tf.Tensor, transpose = true) =>
    tf.reshape(matmul(backend, input, rows(dy), transpose, false), info.filterShape);
  switch (lowering(info, "filterGradient")) {
    case "matmul":
      return product(rows(everyNth(x, info)));
    case "transposed":
      return product(tf.transpose(rows(everyNth(x, info)), [1, 0]), false);
    case "im2col":
      return product(patches(backend, x, info));
    case "inside":
      return insideFilterGradient(x, dy, info, multiplier(backend));
    case "taps": {
      const products = taps(x, info).map((tap) => matmul(backend, tap, rows(dy), true, false));
      return tf.reshape(tf.stack(products), info.filterShape);
    }
    default:
      return withPadding(info, x, (padded) => {
        const [input, unstrided] = withoutStride(padded, info);
        const inputs = [input, ints(info.filterShape), dy];
        return backend.executeSingleOutput("Conv2DBackpropFilter", attributes(unstrided), inputs);
      });
  }
}

/**
 * The same filter gradient with stride 1, for a 1x1 filter: with a stride, over fewer than 8 channels, the op of
 * TensorFlow 2.21 (oneDNN) writes past the memory that it allocated.
 */
function withoutStride(x: tf.Tensor, info: Info): [tf.Tensor, Info] {
  const { filterHeight, filterWidth, dataFormat } = info;
  if (filterHeight !== 1 || filterWidth !== 1 || dataFormat !== "channelsLast") return [x, info];
  return [everyNth(x, info), { ...info, strideHeight: 1, strideWidth: 1 }];
}

/** Explicit padding goes before the op: within it, TensorFlow's gradients take a path fifty times slower. */
function isExplicit({ padInfo }: Info): boolean {
  return padInfo.type !== "SAME" && padInfo.type !== "VALID";
}

function withPadding(info: Info, x: tf.Tensor, run: (x: tf.Tensor) => tf.Tensor): tf.Tensor {
  if (!isExplicit(info)) return run(x);
  const { top, bottom, left, right } = info.padInfo;
  const around: [number, number][] = [[top, bottom], [left, right]];
  const last = info.dataFormat === "channelsLast";
  return run(tf.pad(x, last ? [[0, 0], ...around, [0, 0]] : [[0, 0], [0, 0], ...around]));
}

function paddedShape({ inShape, padInfo, dataFormat }: Info): number[] {
  const { top, bottom, left, right } = padInfo;
  const height = dataFormat === "channelsLast" ? 1 : 2;
  return inShape.map((dim, i) =>
    i === height ? dim + top + bottom : i === height + 1 ? dim + left + right : dim
  );
}

function attributes(info: Info): OpAttribute[] {
  const last = info.dataFormat === "channelsLast";
  const around = (height: number, width: number) => last ? [1, height, width, 1] : [1, 1, height, width];
  return [
    FLOAT,
    int("strides", around(info.strideHeight, info.strideWidth)),
    text("padding", info.padInfo.type === "SAME" ? "SAME" : "VALID"),
    text("data_format", last ? "NHWC" : "NCHW"),
    bool("use_cudnn_on_gpu", true),
    int("dilations", around(info.dilationHeight, info.dilationWidth)),
  ];
}

function multiplier(backend: NodeBackend): Parameters<typeof insideForward>[3] {
  return (a, b, transposeA, transposeB) => matmul(backend, a, b, transposeA, transposeB);
}

function matmul(
  backend: NodeBackend,
  a: tf.Tensor,
  b: tf.Tensor,
  transposeA = false,
  transposeB = false,
): tf.Tensor {
  const attrs = [FLOAT, bool("transpose_a", transposeA), bool("transpose_b", transposeB)];
  return backend.executeSingleOutput("MatMul", attrs, [a, b]);
}
