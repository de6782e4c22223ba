/**
 * Convolutions of stride 1 over images hardly larger than the filter: a product for each position in the filter
 * over the pixels that it meets inside the image. Products with the padding's zeros, which are 5 of 9 for a 3x3
 * filter over 2x2 pixels, are left out.
 * @module
 */
import { tf } from "../../../deps.ts";

type Info = tf.backend_util.Conv2DInfo;
/** `a * b`, either transposed. */
type Multiply = (a: tf.Tensor, b: tf.Tensor, transposeA: boolean, transposeB: boolean) => tf.Tensor;

/** Where a position in the filter meets an axis of the image: `count` outputs from `output` on read from `input`. */
interface Overlap {
  readonly input: number;
  readonly output: number;
  readonly count: number;
}

/** A position in the filter that meets the image. */
interface Position {
  /** Its index in the filter, row by row. */
  readonly index: number;
  readonly rows: Overlap;
  readonly columns: Overlap;
}

/** `[batch, height, width, out]` */
export function insideForward(x: tf.Tensor, filter: tf.Tensor, info: Info, multiply: Multiply): tf.Tensor {
  const weights = byPosition(filter, info);
  return tf.addN(
    positions(info).map(({ index, rows, columns }) => {
      const met = part(x, rows.input, columns.input, rows, columns);
      const y = multiply(flat(met), weights(index), false, false);
      return around(tf.reshape(y, [...met.shape.slice(0, 3), info.outChannels]), info.outShape, [
        rows.output,
        columns.output,
      ]);
    }),
  );
}

/** `[batch, height, width, in]` */
export function insideInputGradient(
  dy: tf.Tensor,
  filter: tf.Tensor,
  info: Info,
  multiply: Multiply,
): tf.Tensor {
  const weights = byPosition(filter, info);
  return tf.addN(
    positions(info).map(({ index, rows, columns }) => {
      const made = part(dy, rows.output, columns.output, rows, columns);
      const dx = multiply(flat(made), weights(index), false, true);
      return around(tf.reshape(dx, [...made.shape.slice(0, 3), info.inChannels]), info.inShape, [
        rows.input,
        columns.input,
      ]);
    }),
  );
}

/** `[filter height, filter width, in, out]` */
export function insideFilterGradient(x: tf.Tensor, dy: tf.Tensor, info: Info, multiply: Multiply): tf.Tensor {
  const { filterHeight, filterWidth, inChannels, outChannels } = info;
  const products: (tf.Tensor | undefined)[] = new Array(filterHeight * filterWidth).fill(undefined);
  for (const { index, rows, columns } of positions(info)) {
    const met = part(x, rows.input, columns.input, rows, columns);
    const made = part(dy, rows.output, columns.output, rows, columns);
    products[index] = multiply(flat(met), flat(made), true, false);
  }
  const all = products.map((product) => product ?? tf.zeros([inChannels, outChannels]));
  return tf.reshape(tf.stack(all), info.filterShape);
}

function positions({ filterHeight, filterWidth, padInfo, ...info }: Info): Position[] {
  const rows = overlaps(filterHeight, padInfo.top, info.inHeight, info.outHeight);
  const columns = overlaps(filterWidth, padInfo.left, info.inWidth, info.outWidth);
  return rows.flatMap((row, i) =>
    columns.map((column, j) => ({ index: i * filterWidth + j, rows: row, columns: column }))
  ).filter(({ rows, columns }) => rows.count > 0 && columns.count > 0);
}

function overlaps(filter: number, before: number, inputs: number, outputs: number): Overlap[] {
  return Array.from({ length: filter }, (_, i) => {
    const output = Math.max(0, before - i);
    const end = Math.min(outputs, inputs + before - i);
    return { input: output + i - before, output, count: end - output };
  });
}

/** One matrix `[in, out]` of the filter; TensorFlow takes it where it lies. */
function byPosition(filter: tf.Tensor, { inChannels, outChannels }: Info): (index: number) => tf.Tensor {
  const all = tf.reshape(filter, [-1, inChannels, outChannels]);
  return (index) =>
    tf.reshape(tf.slice(all, [index, 0, 0], [1, inChannels, outChannels]), [inChannels, outChannels]);
}

/** The pixels that an overlap takes from an image. */
function part(image: tf.Tensor, top: number, left: number, rows: Overlap, columns: Overlap): tf.Tensor {
  const [batch, height, width, channels] = image.shape as [number, number, number, number];
  if (rows.count === height && columns.count === width) return image;
  return tf.slice(image, [0, top, left, 0], [batch, rows.count, columns.count, channels]);
}

/** Zeros around pixels, up to an image's shape. */
function around(pixels: tf.Tensor, shape: number[], [top, left]: [number, number]): tf.Tensor {
  const [bottom, right] = [shape[1]! - top - pixels.shape[1]!, shape[2]! - left - pixels.shape[2]!];
  if (top + bottom + left + right === 0) return pixels;
  return tf.pad(pixels, [[0, 0], [top, bottom], [left, right], [0, 0]]);
}

/** `[pixels, channels]` */
function flat(image: tf.Tensor): tf.Tensor {
  return tf.reshape(image, [-1, image.shape[3]!]);
}
