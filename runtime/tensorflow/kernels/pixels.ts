/** Rearranges an image's pixels for convolutions that run as matrix products. @module */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../binding/attributes.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { FLOAT, INDEX, int, ints, text } from "./kernel.ts";

type Info = tf.backend_util.Conv2DInfo;
type Shape4D = [number, number, number, number];

/** `[batch * height * width, channels]`. */
export function rows(x: tf.Tensor): tf.Tensor {
  return tf.reshape(x, [-1, x.shape[3]!]);
}

/** The pixels that a 1x1 convolution looks at: every one, or one in each stride's block. */
export function everyNth(x: tf.Tensor, { strideHeight: s, strideWidth: t }: Info): tf.Tensor {
  if (s === 1 && t === 1) return x;
  const [n, h, w, c] = x.shape as Shape4D;
  if (h % s !== 0 || w % t !== 0) return tf.stridedSlice(x, [0, 0, 0, 0], x.shape, [1, s, t, 1]);
  // Rows and pixels to keep lie first in their blocks: a plain slice, twice as fast as a strided one.
  const blocks = tf.reshape(x, [n * h / s, s, w / t, t * c]);
  return tf.reshape(tf.slice(blocks, [0, 0, 0, 0], [n * h / s, 1, w / t, c]), [n, h / s, w / t, c]);
}

/** The transpose of `everyNth`: pixels back where they were taken from, zeros between. */
export function spread(backend: NodeBackend, dy: tf.Tensor, info: Info): tf.Tensor {
  const { strideHeight: s, strideWidth: t, inShape } = info;
  if (s === 1 && t === 1) return dy;
  const [n, h, w, c] = inShape;
  if (h % s !== 0 || w % t !== 0) {
    const all = 15; // begin and end masks: from the start to the end of all four axes
    const masks: OpAttribute[] = [
      int("begin_mask", all),
      int("end_mask", all),
      int("ellipsis_mask", 0),
      int("new_axis_mask", 0),
      int("shrink_axis_mask", 0),
    ];
    const zeros = ints([0, 0, 0, 0]);
    const inputs = [ints(inShape), zeros, zeros, ints([1, s, t, 1]), dy];
    return backend.executeSingleOutput("StridedSliceGrad", [FLOAT, INDEX, ...masks], inputs);
  }
  const blocks = tf.reshape(dy, [n * h / s, 1, w / t, c]);
  return tf.reshape(tf.pad(blocks, [[0, 0], [0, s - 1], [0, 0], [0, (t - 1) * c]]), inShape);
}

/** The patch that each output pixel is made of, as a row: `[pixels, filter height * filter width * channels]`. */
export function patches(backend: NodeBackend, x: tf.Tensor, info: Info): tf.Tensor {
  const size = info.filterHeight * info.filterWidth * info.inChannels;
  if (info.strideHeight === 1 && info.strideWidth === 1) return tf.concat(taps(x, info), 1);
  const attributes = [
    FLOAT,
    int("ksizes", [1, info.filterHeight, info.filterWidth, 1]),
    int("strides", [1, info.strideHeight, info.strideWidth, 1]),
    int("rates", [1, 1, 1, 1]),
    text("padding", "VALID"),
  ];
  return tf.reshape(backend.executeSingleOutput("ExtractImagePatches", attributes, [padded(x, info)]), [
    -1,
    size,
  ]);
}

/** For each position in the filter, the pixels that it meets, as rows. Stride 1. */
export function taps(x: tf.Tensor, info: Info): tf.Tensor[] {
  const around = padded(x, info);
  const size = [info.batchSize, info.outHeight, info.outWidth, info.inChannels];
  return positions(info, (i, j) => rows(tf.slice(around, [0, i, j, 0], size)));
}

/** The transpose of `patches`: adds each patch back to the pixels that it was taken from. Stride 1. */
export function fromPatches(columns: tf.Tensor, info: Info): tf.Tensor {
  const { batchSize: n, outHeight: h, outWidth: w, inChannels: c, filterHeight, filterWidth, padInfo } = info;
  const grid = tf.reshape(columns, [n, h, w, filterHeight * filterWidth, c]);
  const shifted = positions(info, (i, j) => {
    const one = tf.slice(grid, [0, 0, 0, i * filterWidth + j, 0], [n, h, w, 1, c]);
    const after = [filterHeight - 1 - i, filterWidth - 1 - j] as const;
    return tf.pad(tf.reshape(one, [n, h, w, c]), [[0, 0], [i, after[0]], [j, after[1]], [0, 0]]);
  });
  return tf.slice(tf.addN(shifted), [0, padInfo.top, padInfo.left, 0], info.inShape);
}

function padded(x: tf.Tensor, { padInfo: { top, bottom, left, right } }: Info): tf.Tensor {
  return top + bottom + left + right === 0 ? x : tf.pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]]);
}

function positions<T>({ filterHeight, filterWidth }: Info, f: (i: number, j: number) => T): T[] {
  return Array.from(
    { length: filterHeight * filterWidth },
    (_, k) => f(Math.floor(k / filterWidth), k % filterWidth),
  );
}
