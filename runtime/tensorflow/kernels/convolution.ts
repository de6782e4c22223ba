/**
 * Two-dimensional convolution and its gradients for the backend "tensorflow": TensorFlow's ops with every
 * padding, or matrix products where `lowering` says so. Images are `[batch, height, width, channels]`, filters
 * `[height, width, in, out]`.
 * @module
 */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../attributes.ts";
import type { NodeBackend } from "../backend.ts";
import { bool, FLOAT, INDEX, int, ints, register, text } from "./kernel.ts";
import { lowering } from "./lowering.ts";

type Info = tf.backend_util.Conv2DInfo;

/** Registers `Conv2D` and its two gradients. */
export function registerConvolution(): void {
  register(tf.Conv2D, (backend, { x, filter }, attrs) => {
    const info = conv2dInfo(x!.shape, filter!.shape, attrs);
    return forward(backend, x!, filter!, info);
  });
  register(tf.Conv2DBackpropInput, (backend, { dy, filter }, attrs) => {
    const info = conv2dInfo(attrs.inputShape, filter!.shape, attrs);
    return inputGradient(backend, dy!, filter!, info);
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
  const weights = () => tf.reshape(filter, [-1, info.outChannels]);
  switch (lowering(info)) {
    case "plain":
      return backend.executeSingleOutput("Conv2D", attributes(info), [x, filter]);
    case "matmul":
      return tf.reshape(matmul(backend, rows(x), weights()), info.outShape);
    case "strided":
      return tf.reshape(matmul(backend, rows(everyNth(backend, x, info)), weights()), info.outShape);
    case "im2col":
      return tf.reshape(matmul(backend, patches(x), weights()), info.outShape);
  }
}

function inputGradient(backend: NodeBackend, dy: tf.Tensor, filter: tf.Tensor, info: Info): tf.Tensor {
  const product = () => matmul(backend, rows(dy), tf.reshape(filter, [-1, info.outChannels]), false, true);
  switch (lowering(info)) {
    case "plain":
      return backend.executeSingleOutput("Conv2DBackpropInput", attributes(info), [
        ints(info.inShape),
        filter,
        dy,
      ]);
    case "matmul":
      return tf.reshape(product(), info.inShape);
    case "strided": {
      const sampled = tf.reshape(product(), [...info.outShape.slice(0, 3), info.inChannels]);
      const { begin, strides, masks } = slices(info);
      return backend.executeSingleOutput("StridedSliceGrad", masks, [
        ints(info.inShape),
        ints(begin),
        ints(begin),
        ints(strides),
        sampled,
      ]);
    }
    case "im2col":
      return fromPatches(product(), info);
  }
}

function filterGradient(backend: NodeBackend, x: tf.Tensor, dy: tf.Tensor, info: Info): tf.Tensor {
  const product = (inputs: tf.Tensor) =>
    tf.reshape(matmul(backend, inputs, rows(dy), true, false), info.filterShape);
  switch (lowering(info)) {
    case "plain":
      return backend.executeSingleOutput("Conv2DBackpropFilter", attributes(info), [
        x,
        ints(info.filterShape),
        dy,
      ]);
    case "matmul":
      return product(rows(x));
    case "strided":
      return product(rows(everyNth(backend, x, info)));
    case "im2col":
      return product(patches(x));
  }
}

function attributes(info: Info): OpAttribute[] {
  const { padInfo, dataFormat } = info;
  const last = dataFormat === "channelsLast";
  const around = (height: number, width: number) => last ? [1, height, width, 1] : [1, 1, height, width];
  const explicit = padInfo.type !== "SAME" && padInfo.type !== "VALID";
  const pads = [padInfo.top, padInfo.bottom, padInfo.left, padInfo.right];
  return [
    FLOAT,
    int("strides", around(info.strideHeight, info.strideWidth)),
    text("padding", explicit ? "EXPLICIT" : padInfo.type),
    ...(explicit ? [int("explicit_paddings", last ? [0, 0, ...pads, 0, 0] : [0, 0, 0, 0, ...pads])] : []),
    text("data_format", last ? "NHWC" : "NCHW"),
    bool("use_cudnn_on_gpu", true),
    int("dilations", around(info.dilationHeight, info.dilationWidth)),
  ];
}

/** `[batch * height * width, channels]`. */
function rows(x: tf.Tensor): tf.Tensor {
  return tf.reshape(x, [-1, x.shape[3]!]);
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

function slices(info: Info): { begin: number[]; strides: number[]; masks: OpAttribute[] } {
  const ALL = 15; // begin and end masks: from the start to the end of all four axes
  return {
    begin: [0, 0, 0, 0],
    strides: [1, info.strideHeight, info.strideWidth, 1],
    masks: [
      FLOAT,
      INDEX,
      int("begin_mask", ALL),
      int("end_mask", ALL),
      int("ellipsis_mask", 0),
      int("new_axis_mask", 0),
      int("shrink_axis_mask", 0),
    ],
  };
}

/** The pixels that a strided 1x1 convolution looks at. */
function everyNth(backend: NodeBackend, x: tf.Tensor, info: Info): tf.Tensor {
  const { begin, strides, masks } = slices(info);
  return backend.executeSingleOutput("StridedSlice", masks, [x, ints(begin), ints(begin), ints(strides)]);
}

/** The 3x3 neighbourhoods of all pixels, `[batch * height * width, 9 * channels]`. */
function patches(x: tf.Tensor): tf.Tensor {
  const [n, h, w, c] = x.shape as [number, number, number, number];
  const padded = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]);
  const shifted = neighbours((i, j) => tf.slice(padded, [0, i, j, 0], [n, h, w, c]));
  return tf.reshape(tf.concat(shifted, 3), [-1, 9 * c]);
}

/** The transpose of `patches`: adds each neighbourhood back to the pixels that it was taken from. */
function fromPatches(columns: tf.Tensor, info: Info): tf.Tensor {
  const [n, h, w, c] = info.inShape;
  const grid = tf.reshape(columns, [n, h, w, 9, c]);
  const shifted = neighbours((i, j) => {
    const one = tf.reshape(tf.slice(grid, [0, 0, 0, i * 3 + j, 0], [n, h, w, 1, c]), [n, h, w, c]);
    return tf.pad(one, [[0, 0], [i, 2 - i], [j, 2 - j], [0, 0]]);
  });
  return tf.slice(tf.addN(shifted), [0, 1, 1, 0], [n, h, w, c]);
}

function neighbours(f: (i: number, j: number) => tf.Tensor): tf.Tensor[] {
  return [0, 1, 2].flatMap((i) => [0, 1, 2].map((j) => f(i, j)));
}
