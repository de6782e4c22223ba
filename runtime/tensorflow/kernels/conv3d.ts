/**
 * Convolutions of volumes and their gradients for the backend "tensorflow", with dilation. Volumes are
 * `[batch, depth, height, width, channels]`, filters `[depth, height, width, in, out]`.
 * @module
 */
import { tf } from "../../../deps.ts";
import { type OpAttribute, typeAttr } from "../binding/attributes.ts";
import { TF_INT32 } from "../binding/dtypes.ts";
import { dilate, dilatedSize, undilate } from "./dilation.ts";
import { FLOAT, int, ints, register, text } from "./kernel.ts";

type Three = [depth: number, height: number, width: number];

interface Attributes {
  readonly strides: number | Three;
  readonly pad: "same" | "valid" | number;
  readonly dilations?: number | Three;
}

/** Registers `Conv3D` and its two gradients. */
export function registerConv3d(): void {
  register(
    tf.Conv3D,
    (backend, { x, filter }, attrs) =>
      backend.executeSingleOutput("Conv3D", opAttributes(attrs), [x!, dilate(filter!, dilationsOf(attrs))]),
  );
  register(tf.Conv3DBackpropInputV2, (backend, { dy, filter }, attrs) => {
    const inputs = [ints(attrs.inputShape), dilate(filter!, dilationsOf(attrs)), dy!];
    const op = [...opAttributes(attrs), typeAttr("Tshape", TF_INT32)];
    return backend.executeSingleOutput("Conv3DBackpropInputV2", op, inputs);
  });
  register(tf.Conv3DBackpropFilterV2, (backend, { x, dy }, attrs) => {
    const dilations = dilationsOf(attrs);
    const shape: number[] = attrs.filterShape;
    const sizes = shape.map((size, axis) => dilatedSize(size, dilations[axis] ?? 1));
    const inputs = [x!, ints(sizes), dy!];
    return undilate(
      backend.executeSingleOutput("Conv3DBackpropFilterV2", opAttributes(attrs), inputs),
      dilations,
    );
  });
}

function dilationsOf({ dilations = 1 }: Attributes): Three {
  return three(dilations);
}

function three(sizes: number | Three): Three {
  return typeof sizes === "number" ? [sizes, sizes, sizes] : sizes;
}

function opAttributes({ strides, pad }: Attributes): OpAttribute[] {
  if (typeof pad !== "string") {
    throw new RangeError(`Cannot pad volumes by ${pad} on engine "tensorflow": expected "same" or "valid"`);
  }
  return [
    FLOAT,
    int("strides", [1, ...three(strides), 1]),
    text("padding", pad === "same" ? "SAME" : "VALID"),
    text("data_format", "NDHWC"),
    int("dilations", [1, 1, 1, 1, 1]),
  ];
}
