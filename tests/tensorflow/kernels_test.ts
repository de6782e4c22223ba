/** Tests of convolutions that run as matrix products: against the plain op and against tfjs's `cpu`. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import {
  type ConvolutionPart,
  type Lowering,
  lowering,
  possibleLowerings,
  setLowerings,
  withLowering,
} from "../../runtime/tensorflow/kernels/lowering.ts";
import { runKernel } from "../../stages/tfjs.ts";
import { close } from "./compare.ts";
import { numbers, onCpu, random, test, testTidy } from "./engine.ts";

type Pad = "same" | "valid" | number | tf.backend_util.ExplicitPadding;
type Shape = [number, number, number, number];

interface Convolution {
  readonly x: Shape;
  readonly filter: Shape;
  readonly strides?: number | [number, number];
  readonly pad?: Pad;
  readonly dilations?: number;
  /** How the forward, the input's gradient and the filter's gradient are to run. */
  readonly runs: [Lowering, Lowering, Lowering];
}

const explicit = (top: number, bottom: number, left: number, right: number): Pad => [
  [0, 0],
  [top, bottom],
  [left, right],
  [0, 0],
];

const CONVOLUTIONS: Convolution[] = [
  // 1x1: one product
  { x: [2, 5, 7, 6], filter: [1, 1, 6, 4], runs: ["matmul", "matmul", "matmul"] },
  { x: [1, 1, 1, 3], filter: [1, 1, 3, 1], pad: "same", runs: ["matmul", "matmul", "matmul"] },
  { x: [3, 3, 2, 8], filter: [1, 1, 8, 5], pad: 0, runs: ["matmul", "matmul", "matmul"] },
  // strides: plain slices of whole blocks, or strided ones
  { x: [2, 6, 4, 5], filter: [1, 1, 5, 3], strides: 2, runs: ["matmul", "matmul", "matmul"] },
  { x: [2, 5, 7, 5], filter: [1, 1, 5, 3], strides: 2, runs: ["matmul", "matmul", "matmul"] },
  { x: [4, 6, 5, 3], filter: [1, 1, 3, 4], strides: [2, 1], runs: ["matmul", "matmul", "matmul"] },
  { x: [1, 5, 6, 3], filter: [1, 1, 3, 4], strides: [1, 3], runs: ["matmul", "matmul", "matmul"] },
  { x: [3, 7, 9, 2], filter: [1, 1, 2, 2], strides: 3, runs: ["matmul", "matmul", "matmul"] },
  { x: [1, 5, 7, 2], filter: [1, 1, 2, 3], strides: [2, 3], runs: ["matmul", "matmul", "matmul"] },
  { x: [2, 6, 9, 2], filter: [1, 1, 2, 2], strides: 3, pad: "valid", runs: ["matmul", "matmul", "matmul"] },
  // many channels in, few out: transposed first, unless strided
  { x: [2, 3, 3, 512], filter: [1, 1, 512, 8], runs: ["matmul", "matmul", "transposed"] },
  { x: [1, 2, 1, 513], filter: [1, 1, 513, 3], runs: ["matmul", "matmul", "transposed"] },
  { x: [1, 4, 4, 512], filter: [1, 1, 512, 8], strides: 2, runs: ["matmul", "matmul", "matmul"] },
  // padded: a product would miss the border
  { x: [2, 4, 3, 4], filter: [1, 1, 4, 3], pad: 1, runs: ["plain", "plain", "plain"] },
  // 3x3 over few pixels: patches
  { x: [1, 2, 2, 16], filter: [3, 3, 16, 5], pad: "same", runs: ["im2col", "im2col", "inside"] },
  { x: [1, 3, 5, 24], filter: [3, 3, 24, 3], pad: "valid", runs: ["im2col", "im2col", "im2col"] },
  { x: [2, 3, 2, 64], filter: [3, 3, 64, 4], pad: 1, runs: ["im2col", "im2col", "inside"] },
  {
    x: [3, 2, 3, 100],
    filter: [3, 3, 100, 2],
    pad: explicit(1, 0, 2, 1),
    runs: ["im2col", "im2col", "im2col"],
  },
  { x: [4, 3, 2, 96], filter: [3, 3, 96, 2], pad: "same", runs: ["im2col", "plain", "inside"] },
  { x: [1, 9, 2, 72], filter: [3, 3, 72, 2], pad: "same", runs: ["im2col", "plain", "im2col"] },
  { x: [2, 3, 4, 512], filter: [3, 3, 512, 2], pad: "same", runs: ["im2col", "im2col", "im2col"] },
  { x: [2, 3, 3, 40], filter: [3, 3, 40, 3], pad: "same", runs: ["plain", "plain", "inside"] },
  // 3x3 over images hardly larger: what each position in the filter meets
  { x: [2, 2, 2, 256], filter: [3, 3, 256, 256], pad: "same", runs: ["inside", "inside", "im2col"] },
  { x: [3, 1, 1, 20], filter: [3, 3, 20, 4], pad: "same", runs: ["im2col", "im2col", "inside"] },
  // 3x3 strided: patches for the forward and the filter alone
  { x: [1, 4, 4, 16], filter: [3, 3, 16, 4], strides: 2, pad: "same", runs: ["im2col", "plain", "im2col"] },
  { x: [2, 5, 7, 32], filter: [3, 3, 32, 4], strides: 2, pad: "valid", runs: ["im2col", "plain", "im2col"] },
  { x: [2, 5, 6, 48], filter: [3, 3, 48, 3], strides: 2, pad: 1, runs: ["im2col", "plain", "im2col"] },
  { x: [1, 7, 8, 20], filter: [3, 3, 20, 3], strides: 3, pad: "same", runs: ["im2col", "plain", "im2col"] },
  {
    x: [1, 5, 8, 64],
    filter: [3, 3, 64, 3],
    strides: [1, 2],
    pad: "same",
    runs: ["im2col", "plain", "im2col"],
  },
  { x: [3, 8, 8, 16], filter: [3, 3, 16, 3], strides: 2, pad: "same", runs: ["plain", "plain", "im2col"] },
  // 3x3 over many pixels: a product per position in the filter, inside the image where that is small
  { x: [2, 5, 6, 16], filter: [3, 3, 16, 4], pad: "same", runs: ["plain", "plain", "inside"] },
  { x: [1, 7, 5, 17], filter: [3, 3, 17, 3], pad: "valid", runs: ["plain", "plain", "inside"] },
  { x: [3, 4, 3, 16], filter: [3, 3, 16, 2], pad: 1, runs: ["plain", "plain", "inside"] },
  { x: [2, 5, 9, 16], filter: [3, 3, 16, 4], pad: "same", runs: ["plain", "plain", "taps"] },
  { x: [1, 9, 5, 17], filter: [3, 3, 17, 3], pad: "valid", runs: ["plain", "plain", "taps"] },
  { x: [3, 9, 3, 16], filter: [3, 3, 16, 2], pad: 1, runs: ["plain", "plain", "taps"] },
  {
    x: [1, 6, 9, 16],
    filter: [3, 3, 16, 2],
    pad: explicit(0, 2, 1, 0),
    runs: ["plain", "plain", "taps"],
  },
  // plain: few channels, other filters
  { x: [2, 6, 5, 3], filter: [3, 3, 3, 4], pad: "same", runs: ["plain", "plain", "plain"] },
  { x: [2, 6, 5, 3], filter: [3, 3, 3, 4], strides: 2, pad: 1, runs: ["plain", "plain", "plain"] },
  { x: [1, 9, 9, 3], filter: [7, 7, 3, 2], strides: 2, pad: 3, runs: ["plain", "plain", "plain"] },
  { x: [1, 4, 5, 64], filter: [3, 2, 64, 2], pad: "same", runs: ["plain", "plain", "plain"] },
  { x: [2, 1, 2, 4], filter: [5, 5, 4, 3], pad: "same", runs: ["plain", "plain", "plain"] },
  {
    x: [2, 7, 7, 4],
    filter: [5, 5, 4, 3],
    strides: 3,
    pad: explicit(2, 1, 0, 2),
    runs: ["plain", "plain", "plain"],
  },
];

function attributes({ strides = 1, pad = "valid", dilations = 1 }: Convolution) {
  return { strides, pad, dilations, dataFormat: "NHWC", dimRoundingMode: undefined };
}

function infoOf(convolution: Convolution, dataFormat: "NHWC" | "NCHW" = "NHWC"): tf.backend_util.Conv2DInfo {
  const { strides, pad, dilations } = attributes(convolution);
  return tf.backend_util.computeConv2DInfo(
    convolution.x,
    convolution.filter,
    strides,
    dilations,
    pad as "same",
    undefined,
    false,
    tf.backend_util.convertConv2DDataFormat(dataFormat),
  );
}

/** Numbers in a filter from which tfjs's cpu takes seconds; the plain op is compared with it on smaller ones. */
const CPU_LIMIT = 1e5;

const PARTS: readonly ConvolutionPart[] = ["forward", "inputGradient", "filterGradient"];

function lowerings(info: tf.backend_util.Conv2DInfo): Lowering[] {
  return PARTS.map((part) => lowering(info, part));
}

function describe({ x, filter, strides = 1, pad = "valid" }: Convolution): string {
  const [height, width, , out] = filter;
  return `${height}x${width} of [${x}] to ${out}, strides ${strides}, padding ${JSON.stringify(pad)}`;
}

/** Forward and both gradients, or some of them, as arrays. */
function compute(
  convolution: Convolution,
  parts: readonly ConvolutionPart[] = PARTS,
): Partial<Record<ConvolutionPart, Float32Array>> {
  const { x: inputShape, filter: filterShape } = convolution;
  const attrs = attributes(convolution);
  return tf.tidy(() => {
    const [x, filter] = [random(inputShape, 1), random(filterShape, 2)];
    const dy = random(infoOf(convolution).outShape, 3);
    const run = {
      forward: () => runKernel(tf.Conv2D, { x, filter }, attrs)[0]!,
      inputGradient: () => runKernel(tf.Conv2DBackpropInput, { dy, filter }, { ...attrs, inputShape })[0]!,
      filterGradient: () => runKernel(tf.Conv2DBackpropFilter, { x, dy }, { ...attrs, filterShape })[0]!,
    };
    const shapes = { forward: dy.shape, inputGradient: inputShape, filterGradient: filterShape };
    return Object.fromEntries(parts.map((part) => {
      const made = run[part]();
      assert.deepEqual(made.shape, shapes[part]);
      return [part, made.dataSync() as Float32Array];
    }));
  });
}

function closeAll(
  actual: Partial<Record<ConvolutionPart, Float32Array>>,
  expected: Partial<Record<ConvolutionPart, Float32Array>>,
  what: string,
): void {
  for (const [part, values] of Object.entries(expected)) {
    close(actual[part as ConvolutionPart]!, values, 1e-5, `${part} against ${what}`);
  }
}

for (const convolution of CONVOLUTIONS) {
  testTidy(`convolution ${describe(convolution)} runs as ${convolution.runs.join(", ")}`, async () => {
    assert.deepEqual(lowerings(infoOf(convolution)), convolution.runs);
    const lowered = compute(convolution);
    setLowerings(false);
    try {
      assert.deepEqual(lowerings(infoOf(convolution)), ["plain", "plain", "plain"]);
      const plain = compute(convolution);
      closeAll(lowered, plain, "the plain op");
      for (const part of PARTS) {
        for (const wanted of possibleLowerings(infoOf(convolution), part)) {
          const made = withLowering(wanted, () => compute(convolution, [part]));
          closeAll(made, { [part]: plain[part] }, `the plain op, as ${wanted}`);
        }
      }
    } finally {
      setLowerings(true);
    }
    if (tf.util.sizeFromShape(convolution.filter) > CPU_LIMIT) return;
    closeAll(lowered, await onCpu(() => compute(convolution)), "tfjs's cpu");
  });
}

testTidy("a strided 1x1 filter's gradient stays within its memory where TensorFlow's op does not", () => {
  // Fewer than 8 channels, and pixels left over behind the last stride: the plain op corrupts the heap.
  const convolution: Convolution = {
    x: [2, 8, 8, 3],
    filter: [1, 1, 3, 4],
    strides: 2,
    runs: ["plain", "plain", "plain"],
  };
  const lowered = compute(convolution);
  setLowerings(false);
  try {
    for (let i = 0; i < 100; i++) closeAll(compute(convolution), lowered, "the product");
  } finally {
    setLowerings(true);
  }
});

test("every lowering of every part is among the convolutions that are tried", () => {
  const tried = (i: number) => [...new Set(CONVOLUTIONS.map(({ runs }) => runs[i]!))].sort();
  assert.deepEqual(tried(0), ["im2col", "inside", "matmul", "plain"]);
  assert.deepEqual(tried(1), ["im2col", "inside", "matmul", "plain"]);
  assert.deepEqual(tried(2), ["im2col", "inside", "matmul", "plain", "taps", "transposed"]);
});

test("the rule's edges lie where they were measured", () => {
  const filterGradient = (x: Shape, filter: Shape) =>
    lowering(infoOf({ x, filter, pad: "same", runs: ["plain", "plain", "plain"] }), "filterGradient");
  assert.equal(filterGradient([1, 2, 2, 512], [1, 1, 512, 256]), "transposed");
  assert.equal(filterGradient([1, 2, 2, 512], [1, 1, 512, 257]), "matmul");
  assert.equal(filterGradient([1, 2, 2, 511], [1, 1, 511, 256]), "matmul");
  assert.equal(filterGradient([1, 9, 8, 144], [3, 3, 144, 8]), "im2col");
  assert.equal(filterGradient([1, 9, 8, 143], [3, 3, 143, 8]), "taps");
  assert.equal(filterGradient([1, 4, 8, 256], [3, 3, 256, 8]), "im2col");
  assert.equal(filterGradient([1, 4, 8, 255], [3, 3, 255, 8]), "inside");
  assert.equal(filterGradient([16, 8, 8, 512], [3, 3, 512, 512]), "im2col");
  assert.equal(filterGradient([16, 8, 8, 512], [3, 3, 512, 511]), "inside");
  assert.equal(filterGradient([17, 8, 8, 512], [3, 3, 512, 512]), "inside");
  assert.equal(filterGradient([2, 64, 64, 16], [3, 3, 16, 32]), "plain");
  assert.equal(filterGradient([2, 64, 64, 16], [3, 3, 16, 33]), "taps");
  assert.equal(filterGradient([2, 63, 64, 16], [3, 3, 16, 32]), "taps");
  const of = (part: ConvolutionPart, x: Shape, out: number) =>
    lowering(infoOf({ x, filter: [3, 3, x[3], out], pad: "same", runs: ["plain", "plain", "plain"] }), part);
  const inputGradient = (x: Shape, out = 8) => of("inputGradient", x, out);
  const forward = (x: Shape, out: number) => of("forward", x, out);
  assert.equal(forward([99, 4, 4, 256], 256), "inside");
  assert.equal(forward([99, 4, 5, 256], 256), "plain");
  assert.equal(forward([99, 4, 4, 256], 255), "plain");
  assert.equal(inputGradient([99, 4, 4, 256], 256), "inside");
  assert.equal(inputGradient([99, 4, 4, 255], 256), "plain");
  assert.equal(inputGradient([99, 8, 8, 512], 512), "inside");
  assert.equal(inputGradient([99, 8, 8, 512], 511), "plain");
  assert.equal(inputGradient([99, 8, 9, 512], 512), "plain");
  assert.equal(inputGradient([1, 4, 4, 64]), "im2col");
  assert.equal(inputGradient([1, 4, 4, 63]), "plain");
  assert.equal(inputGradient([1, 4, 5, 511]), "plain");
  assert.equal(inputGradient([2, 8, 8, 512]), "im2col");
  assert.equal(inputGradient([3, 8, 8, 512]), "plain");
});

test("a lowering that the rule takes is among those that are possible", () => {
  for (const convolution of CONVOLUTIONS) {
    const info = infoOf(convolution);
    PARTS.forEach((part, i) => assert.ok(possibleLowerings(info, part).includes(convolution.runs[i]!)));
  }
});

test("channels first is never lowered", () => {
  const like: Convolution = { x: [1, 16, 2, 2], filter: [1, 1, 16, 2], runs: ["plain", "plain", "plain"] };
  assert.deepEqual(lowerings(infoOf(like, "NCHW")), like.runs);
  assert.deepEqual(lowerings(infoOf({ ...like, filter: [3, 3, 16, 2], pad: "same" }, "NCHW")), like.runs);
});

testTidy("a dilated convolution is never lowered, and its gradients are its transposes", async () => {
  for (const pad of ["same", "valid", 1] as const) {
    const convolution: Convolution = {
      x: [1, 7, 6, 32],
      filter: [3, 3, 32, 2],
      pad,
      dilations: 2,
      runs: ["plain", "plain", "plain"],
    };
    assert.deepEqual(lowerings(infoOf(convolution)), convolution.runs);
    const ours = compute(convolution);
    const forward = () => {
      const [x, filter] = [
        random(convolution.x, 1) as tf.Tensor4D,
        random(convolution.filter, 2) as tf.Tensor4D,
      ];
      return tf.tidy(() => tf.conv2d(x, filter, 1, pad, "NHWC", 2).dataSync());
    };
    close(ours.forward!, await onCpu(() => tf.tidy(forward)), 1e-5, "forward");
    adjoint(convolution, ours);
  }
});

/** <dy, conv(v, w)> = <dx, v> = <dw, w> for any v and w: the gradients of a bilinear map. */
function adjoint({ x, filter }: Convolution, made: ReturnType<typeof compute>): void {
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
  const dy = numbers(made.forward!.length, 3);
  const all = dot(dy, made.forward!);
  const size = (shape: number[]) => shape.reduce((a, b) => a * b, 1);
  close([dot(made.inputGradient!, numbers(size(x), 1))], [all], 1e-4, "<dx, x>");
  close([dot(made.filterGradient!, numbers(size(filter), 2))], [all], 1e-4, "<dw, w>");
}
