/** Cases of ops of TensorFlow.js whose gradients are put together from others', or are a function's own. @module */
import { tf } from "../../../deps.ts";
import { apart, between, type GradientCase, plain } from "../differences.ts";

const LOGITS = () => between(-2, 2, [3, 4]);
const ONE_HOT = () => tf.tensor2d([1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0], [3, 4]);

/** Of no kernel's own. */
export const COMPOSED: readonly GradientCase[] = [
  { name: "logSoftmax", inputs: [LOGITS()], op: (x) => tf.logSoftmax(x!) },
  { name: "logSumExp", inputs: [LOGITS()], op: (x) => tf.logSumExp(x!, 0) },
  {
    name: "softmaxCrossEntropy",
    inputs: [LOGITS()],
    op: (x) => tf.losses.softmaxCrossEntropy(ONE_HOT(), x!),
  },
  {
    name: "softmaxCrossEntropy, smoothed",
    inputs: [LOGITS()],
    op: (x) => tf.losses.softmaxCrossEntropy(ONE_HOT(), x!, undefined, 0.1),
  },
  {
    name: "sigmoidCrossEntropy",
    inputs: [between(-2, -0.2, [3, 4])],
    op: (x) => tf.losses.sigmoidCrossEntropy(ONE_HOT(), x!),
  },
  { name: "huberLoss", inputs: [between(-4, 4, [3, 4])], op: (x) => tf.losses.huberLoss(ONE_HOT(), x!) },
  { name: "logLoss", inputs: [between(0.2, 0.8, [3, 4])], op: (x) => tf.losses.logLoss(ONE_HOT(), x!) },
  { name: "hingeLoss", inputs: [between(-0.8, 0.8, [3, 4])], op: (x) => tf.losses.hingeLoss(ONE_HOT(), x!) },
  {
    name: "cosineDistance",
    inputs: [plain([3, 4])],
    op: (x) => tf.losses.cosineDistance(ONE_HOT(), x!, 1),
  },
  ...([1, 2, "euclidean", "fro", Infinity] as const).map((order): GradientCase => ({
    name: `norm of order ${order}`,
    inputs: [order === Infinity || order === 1 ? apart([3, 4]) : between(0.3, 1, [3, 4])],
    op: (x) => tf.norm(x!, order, order === "fro" ? [0, 1] : 1),
  })),
  { name: "moments", inputs: [plain([3, 4, 2])], op: (x) => tf.moments(x!, [0, 2]).variance },
  { name: "meanSquaredError", inputs: [plain([3, 4])], op: (x) => tf.losses.meanSquaredError(ONE_HOT(), x!) },
  {
    name: "absoluteDifference",
    inputs: [apart([3, 4])],
    op: (x) => tf.losses.absoluteDifference(tf.zeros([3, 4]), x!),
  },
  {
    name: "separableConv2d, dilated",
    inputs: [plain([2, 6, 5, 3]), plain([2, 3, 3, 2], 2), plain([1, 1, 6, 2], 3)],
    op: (x, depthwise, pointwise) =>
      tf.separableConv2d(
        x as tf.Tensor4D,
        depthwise as tf.Tensor4D,
        pointwise as tf.Tensor4D,
        1,
        "same",
        [2, 2],
      ),
  },
  ...(["same", "valid"] as const).map((pad): GradientCase => ({
    name: `conv1d, dilated, ${pad}`,
    inputs: [plain([2, 9, 3]), plain([3, 3, 2], 2)],
    op: (x, filter) => tf.conv1d(x as tf.Tensor3D, filter as tf.Tensor3D, 1, pad, "NWC", 3),
  })),
  ...(["linear", "relu", "sigmoid", "elu"] as const).flatMap((activation): GradientCase[] => [
    {
      name: `fused conv2d, ${activation}`,
      inputs: [between(0.1, 1, [2, 4, 5, 2]), between(0.1, 1, [2, 2, 2, 3], 2), between(0.1, 1, [3], 3)],
      op: (x, filter, bias) =>
        tf.fused.conv2d({
          x: x as tf.Tensor4D,
          filter: filter as tf.Tensor4D,
          strides: 1,
          pad: "same",
          bias: bias!,
          activation,
        }),
    },
    {
      name: `fused depthwiseConv2d, ${activation}`,
      inputs: [between(0.1, 1, [2, 4, 5, 2]), between(0.1, 1, [2, 2, 2, 2], 2), between(0.1, 1, [4], 3)],
      op: (x, filter, bias) =>
        tf.fused.depthwiseConv2d({
          x: x as tf.Tensor4D,
          filter: filter as tf.Tensor4D,
          strides: 1,
          pad: "same",
          bias: bias!,
          activation,
        }),
    },
    {
      name: `fused matMul, ${activation}`,
      inputs: [between(0.1, 1, [3, 4]), between(0.1, 1, [5, 4], 2), between(0.1, 1, [5], 3)],
      op: (a, b, bias) => tf.fused.matMul({ a: a!, b: b!, transposeB: true, bias: bias!, activation }),
    },
    {
      name: `fused matMul of plain matrices, ${activation}`,
      inputs: [between(0.1, 1, [3, 4]), between(0.1, 1, [4, 5], 2), between(0.1, 1, [5], 3)],
      op: (a, b, bias) => tf.fused.matMul({ a: a!, b: b!, bias: bias!, activation }),
    },
  ]),
];
