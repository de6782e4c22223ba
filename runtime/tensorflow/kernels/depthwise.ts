/**
 * Convolutions by channel and their gradients for the backend "tensorflow", with every padding and dilation.
 * Images are `[batch, height, width, channels]`, filters `[height, width, channels, multiplier]`.
 * @module
 */
import { tf } from "../../../deps.ts";
import type { OpAttribute } from "../binding/attributes.ts";
import { dilate, dilatedSize, undilate } from "./dilation.ts";
import { FLOAT, int, ints, register, text } from "./kernel.ts";

type Two = [height: number, width: number];

interface Attributes {
  readonly strides: number | Two;
  readonly pad: "same" | "valid" | number | tf.backend_util.ExplicitPadding;
  readonly dilations?: number | Two | null;
  readonly dimRoundingMode?: "floor" | "round" | "ceil";
}

/** Registers `DepthwiseConv2dNative` and its two gradients. */
export function registerDepthwise(): void {
  register(tf.DepthwiseConv2dNative, (backend, { x, filter }, attrs) => {
    const { padded, op } = plan(x!.shape, filter!.shape, attrs);
    const inputs = [padded ? tf.pad(x!, padded.around) : x!, dilate(filter!, dilationsOf(attrs))];
    return backend.executeSingleOutput("DepthwiseConv2dNative", op, inputs);
  });
  register(tf.DepthwiseConv2dNativeBackpropInput, (backend, { dy, filter }, attrs) => {
    const shape: number[] = attrs.inputShape;
    const { padded, op } = plan(shape, filter!.shape, attrs);
    const inputs = [ints(padded?.shape ?? shape), dilate(filter!, dilationsOf(attrs)), dy!];
    const dx = backend.executeSingleOutput("DepthwiseConv2dNativeBackpropInput", op, inputs);
    return padded ? tf.slice(dx, padded.around.map(([before]) => before), shape) : dx;
  });
  register(tf.DepthwiseConv2dNativeBackpropFilter, (backend, { x, dy }, attrs) => {
    const shape: number[] = attrs.filterShape;
    const { padded, op } = plan(x!.shape, shape, attrs);
    const dilations = dilationsOf(attrs);
    const sizes = shape.map((size, axis) => dilatedSize(size, dilations[axis] ?? 1));
    const inputs = [padded ? tf.pad(x!, padded.around) : x!, ints(sizes), dy!];
    return undilate(
      backend.executeSingleOutput("DepthwiseConv2dNativeBackpropFilter", op, inputs),
      dilations,
    );
  });
}

function dilationsOf({ dilations }: Attributes): Two {
  return typeof dilations === "number" ? [dilations, dilations] : dilations ?? [1, 1];
}

/** The op's attributes, and the padding that goes before it if it is explicit. */
function plan(
  inputShape: number[],
  filterShape: number[],
  attrs: Attributes,
): { op: OpAttribute[]; padded?: { around: [number, number][]; shape: number[] } } {
  const { padInfo, strideHeight, strideWidth } = tf.backend_util.computeConv2DInfo(
    inputShape as [number, number, number, number],
    filterShape as [number, number, number, number],
    attrs.strides,
    dilationsOf(attrs),
    attrs.pad as "same",
    attrs.dimRoundingMode,
    true,
  );
  const { top, bottom, left, right, type } = padInfo;
  const op = [
    FLOAT,
    int("strides", [1, strideHeight, strideWidth, 1]),
    text("padding", type === "SAME" ? "SAME" : "VALID"),
    text("data_format", "NHWC"),
    int("dilations", [1, 1, 1, 1]),
  ];
  if (type === "SAME" || type === "VALID") return { op };
  const around: [number, number][] = [[0, 0], [top, bottom], [left, right], [0, 0]];
  return {
    op,
    padded: { around, shape: inputShape.map((size, axis) => size + around[axis]![0] + around[axis]![1]) },
  };
}
