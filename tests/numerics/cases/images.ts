/** Cases of ops on images and volumes, by kernel. @module */
import { tf } from "../../../deps.ts";
import { BATCH_NORM } from "../../../stages/layers/batch_norm_kernel.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { apart, between, type GradientCase, plain } from "../differences.ts";
import type { Cases } from "./cases.ts";

type Pad = "same" | "valid" | number | tf.backend_util.ExplicitPadding;
type Two = [number, number];
type Three = [number, number, number];

interface Window {
  /** Height and width of images. */
  readonly size: Two;
  readonly kernel: Two;
  readonly stride?: number | Two;
  readonly pad: Pad;
  readonly dilation?: number | Two;
}

const WINDOWS: readonly Window[] = [
  { size: [5, 7], kernel: [3, 3], pad: "same" },
  { size: [5, 6], kernel: [3, 2], pad: "valid" },
  { size: [6, 7], kernel: [3, 3], stride: 2, pad: "same" },
  { size: [6, 7], kernel: [2, 3], stride: 2, pad: "valid" },
  { size: [7, 9], kernel: [2, 2], stride: 3, pad: "same" }, // steps over pixels
  { size: [8, 8], kernel: [3, 3], stride: 3, pad: "valid" },
  { size: [5, 8], kernel: [3, 3], stride: [1, 2], pad: "same" },
  { size: [4, 5], kernel: [1, 1], pad: "same" },
  { size: [4, 5], kernel: [1, 1], stride: 2, pad: "valid" },
  { size: [6, 6], kernel: [1, 1], stride: 2, pad: "same" },
  { size: [1, 9], kernel: [1, 4], stride: [1, 2], pad: "same" },
  { size: [5, 4], kernel: [3, 3], pad: 1 },
];
const EXPLICIT: readonly Window[] = [
  { size: [5, 6], kernel: [3, 3], stride: 2, pad: [[0, 0], [2, 0], [1, 3], [0, 0]] },
  { size: [5, 4], kernel: [1, 1], pad: 1 },
];
// Padded by a number: TensorFlow.js takes the output for as large as without dilation.
const DILATED: readonly Window[] = [
  { size: [6, 7], kernel: [3, 2], pad: "same", dilation: 2 },
  { size: [7, 7], kernel: [2, 3], pad: "valid", dilation: 2 },
  { size: [8, 7], kernel: [3, 2], pad: "same", dilation: [3, 2] },
  { size: [9, 5], kernel: [3, 3], pad: "valid", dilation: [2, 1] },
];

const BATCH = 2;

function nameOf({ size, kernel, stride = 1, pad, dilation = 1 }: Window): string {
  return `${kernel} over ${size}, stride ${stride}, pad ${pad}, dilation ${dilation}`;
}

function rounding(pad: Pad): "floor" | undefined {
  return typeof pad === "string" ? undefined : "floor";
}

/** Channels from which TensorFlow's kernels go other ways, and few. */
const CHANNELS: readonly Two[] = [[3, 4], [16, 2]];

function convolutions(): GradientCase[] {
  return [...WINDOWS, ...EXPLICIT, ...DILATED].flatMap((window) =>
    CHANNELS.map(([from, to]) => {
      const { size, kernel, stride = 1, pad, dilation = 1 } = window;
      return {
        name: `${nameOf(window)}, ${from} channels to ${to}`,
        inputs: [plain([BATCH, ...size, from]), plain([...kernel, from, to], 2)],
        op: (x, filter) =>
          tf.conv2d(
            x as tf.Tensor4D,
            filter as tf.Tensor4D,
            stride,
            pad as "same",
            "NHWC",
            dilation,
            rounding(pad),
          ),
      };
    })
  );
}

function depthwise(): GradientCase[] {
  const multipliers = [1, 2, 3];
  return [...WINDOWS, ...DILATED].map((window, i) => {
    const { size, kernel, pad, dilation = 1 } = window;
    const multiplier = multipliers[i % 3]!;
    // A stride for each axis is not TensorFlow's for convolutions by channel.
    const stride = typeof window.stride === "object" ? window.stride[1] : window.stride ?? 1;
    return {
      name: `${nameOf(window)}, times ${multiplier}`,
      inputs: [plain([BATCH, ...size, 3]), plain([...kernel, 3, multiplier], 2)],
      op: (x, filter) =>
        tf.depthwiseConv2d(
          x as tf.Tensor4D,
          filter as tf.Tensor4D,
          stride,
          pad as "same",
          "NHWC",
          dilation,
          rounding(pad),
        ),
    };
  });
}

function transposed(): GradientCase[] {
  const cases: [size: Two, kernel: Two, stride: number, pad: "same" | "valid", out: Two][] = [
    [[3, 4], [3, 3], 2, "same", [6, 8]],
    [[3, 4], [3, 3], 2, "same", [5, 7]],
    [[3, 2], [2, 3], 2, "valid", [6, 5]],
    [[4, 3], [3, 3], 1, "same", [4, 3]],
    [[2, 3], [2, 2], 3, "valid", [5, 8]],
  ];
  return cases.map(([size, kernel, stride, pad, out]) => ({
    name: `${kernel} over ${size} to ${out}, stride ${stride}, pad ${pad}`,
    inputs: [plain([BATCH, ...size, 3]), plain([...kernel, 4, 3], 2)],
    op: (x, filter) =>
      tf.conv2dTranspose(x as tf.Tensor4D, filter as tf.Tensor4D, [BATCH, ...out, 4], stride, pad),
  }));
}

const VOLUMES: readonly [kernel: Three, stride: Three, pad: "same" | "valid", dilation?: Three][] = [
  [[2, 2, 2], [1, 1, 1], "same"],
  [[2, 3, 2], [2, 1, 2], "valid"],
  [[3, 2, 3], [2, 2, 2], "same"],
  [[1, 1, 1], [2, 2, 2], "same"],
];
const DILATED_VOLUMES: typeof VOLUMES = [
  [[2, 2, 2], [1, 1, 1], "same", [2, 2, 2]],
  [[2, 2, 2], [1, 1, 1], "valid", [1, 2, 2]],
  [[2, 3, 2], [1, 1, 1], "valid", [3, 1, 2]],
  [[2, 3, 2], [1, 1, 1], "same", [1, 2, 1]],
];
const VOLUME: readonly number[] = [BATCH, 4, 5, 3, 2];

function volumes(): GradientCase[] {
  return [...VOLUMES, ...DILATED_VOLUMES].map(([kernel, stride, pad, dilation = [1, 1, 1]]) => ({
    name: `${kernel}, stride ${stride}, pad ${pad}, dilation ${dilation}`,
    inputs: [plain(VOLUME), plain([...kernel, 2, 3], 2)],
    op: (x, filter) =>
      tf.conv3d(
        x as tf.Tensor5D,
        filter as tf.Tensor5D,
        stride,
        pad,
        "NDHWC",
        dilation,
      ),
  }));
}

function transposedVolumes(): GradientCase[] {
  return (["same", "valid"] as const).map((pad) => ({
    name: `stride 2, pad ${pad}`,
    inputs: [plain([BATCH, 2, 3, 2, 3]), plain([2, 2, 2, 2, 3], 2)],
    op: (x, filter) =>
      tf.conv3dTranspose(x as tf.Tensor5D, filter as tf.Tensor5D, [BATCH, 4, 6, 4, 2], 2, pad),
  }));
}

const POOLS: readonly Window[] = [
  { size: [5, 6], kernel: [2, 2], stride: 2, pad: "valid" },
  { size: [5, 6], kernel: [3, 3], stride: 2, pad: "same" },
  { size: [6, 5], kernel: [3, 2], stride: 1, pad: "same" },
  { size: [7, 8], kernel: [2, 2], stride: 3, pad: "same" },
  { size: [6, 7], kernel: [3, 3], stride: 2, pad: "valid" },
  { size: [6, 7], kernel: [6, 7], stride: 1, pad: "valid" },
];

type Pool = (x: tf.Tensor4D, window: Two, stride: number | Two, pad: "same") => tf.Tensor;
type Pool3d = (x: tf.Tensor5D, window: Three, stride: Three, pad: "same" | "valid") => tf.Tensor;

function pools(pool: Pool, make: typeof plain): GradientCase[] {
  return POOLS.map((window) => ({
    name: nameOf(window),
    inputs: [make([3, ...window.size, 2])],
    op: (x) => pool(x as tf.Tensor4D, window.kernel, window.stride!, window.pad as "same"),
  }));
}

function pools3d(pool: Pool3d, make: typeof plain): GradientCase[] {
  return VOLUMES.map(([window, stride, pad]) => ({
    name: `${window}, stride ${stride}, pad ${pad}`,
    inputs: [make(VOLUME)],
    op: (x) => pool(x as tf.Tensor5D, window, stride, pad),
  }));
}

function resizings(
  resize: (x: tf.Tensor4D, size: Two, corners: boolean, centers: boolean) => tf.Tensor,
): GradientCase[] {
  const sizes: [from: Two, to: Two][] = [
    [[2, 3], [4, 6]], // as UpSampling2D
    [[3, 2], [3, 6]],
    [[2, 3], [5, 7]],
    [[5, 6], [3, 2]],
    [[3, 3], [1, 1]],
  ];
  return [[false, false], [true, false], [false, true]].flatMap(([corners, centers]) =>
    sizes.map(([from, to]) => ({
      name: `${from} to ${to}${corners ? ", corners aligned" : ""}${centers ? ", half-pixel centers" : ""}`,
      inputs: [plain([3, ...from, 2])], // TensorFlow.js's backend cpu is wrong from a batch of 2 on
      op: (x: tf.Tensor) => resize(x as tf.Tensor4D, to, corners!, centers!),
    })) as unknown as GradientCase[]
  );
}

// Without a scale, TensorFlow.js keeps what is not there for the gradient, and fails.
function batchNorms(shape: number[]): GradientCase[] {
  const channels = [shape.at(-1)!];
  const inputs = [plain(shape), plain(channels, 2), between(0.5, 2, channels, 3)];
  return [
    {
      name: `[${shape}], scaled`,
      inputs: [...inputs, plain(channels, 4), plain(channels, 5)],
      op: (x, mean, variance, offset, scale) =>
        tf.batchNorm(
          x!,
          mean as tf.Tensor1D,
          variance as tf.Tensor1D,
          offset as tf.Tensor1D,
          scale as tf.Tensor1D,
        ),
    },
  ];
}

const smooth = (one: GradientCase): GradientCase => ({
  ...one,
  inputs: one.inputs.map((input) => ({ ...input, step: 0.03 })),
});

/** Ops of images and volumes. */
export const IMAGES: Cases = {
  [tf.Conv2D]: convolutions(),
  [tf.Conv2DBackpropInput]: transposed(),
  [tf.Conv3D]: volumes(),
  [tf.Conv3DBackpropInputV2]: transposedVolumes(),
  [tf.DepthwiseConv2dNative]: depthwise(),
  [tf.MaxPool]: pools(tf.maxPool as Pool, apart),
  [tf.AvgPool]: pools(tf.avgPool as Pool, plain),
  [tf.MaxPool3D]: pools3d(tf.maxPool3d as Pool3d, apart),
  [tf.AvgPool3D]: pools3d(tf.avgPool3d as Pool3d, plain),
  [tf.ResizeBilinear]: resizings(tf.image.resizeBilinear),
  [tf.ResizeNearestNeighbor]: resizings(tf.image.resizeNearestNeighbor),
  [tf.FusedBatchNorm]: [...batchNorms([2, 3, 2, 3]), ...batchNorms([4, 3])].map(smooth),
  [BATCH_NORM]: [[2, 3, 4, 5], [6, 1, 1, 3], [1, 5, 7, 1]].map((shape) =>
    ({
      name: `[${shape}]`,
      inputs: [plain(shape), plain(shape.slice(-1), 2), plain(shape.slice(-1), 3)],
      op: (x, scale, offset) =>
        runKernel(BATCH_NORM, { x: x!, scale: scale!, offset: offset! }, { epsilon: 1e-3 })[0]!,
    }) as GradientCase
  ).map(smooth),
  [tf.LRN]: [1, 2, 5].map((radius) =>
    smooth({
      name: `radius ${radius}`,
      inputs: [plain([2, 2, 3, 5])],
      op: (x) => tf.localResponseNormalization(x as tf.Tensor4D, radius, 1, 0.7, 0.75),
    })
  ),
  [tf.Dilation2D]: (["same", "valid"] as const).flatMap((pad) =>
    [1, 2].map((stride) =>
      ({
        name: `stride ${stride}, pad ${pad}`,
        inputs: [
          { ...apart([2, 5, 6, 2]), step: 0.005 },
          // Small beside the distances between pixels, so that sums lie apart as well.
          { shape: [2, 3, 2], values: apart([2, 3, 2], 5).values.map((v) => v / 37), step: 0.005 },
        ],
        op: (x, filter) => tf.dilation2d(x as tf.Tensor4D, filter as tf.Tensor3D, stride, pad),
      }) as GradientCase
    )
  ),
};
