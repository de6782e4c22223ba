/**
 * Convolutions of volumes and their gradients: those of planes, for each position of the filter along depth.
 * The backend's own pad by less than nothing at some strides, and their gradients add to memory that was not
 * cleared.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { register } from "./kernel.ts";
import { convolutionInfo, covered, type Info, met, returned } from "./pixels.ts";
import { asColumns, asPlanes, columnPadding, type Padding, type Three, three } from "./volumes.ts";

interface Attributes {
  readonly strides: Three;
  readonly pad: Padding;
  readonly dilations?: Three;
}

/** Registers all three. */
export function registerConv3d(): void {
  register(tf.Conv3D, ({ x, filter }, attributes) => {
    const depth = depthInfo(x!.shape, filter!.shape, attributes);
    const plane = planeAttributes(attributes);
    const y = sum(
      tf.unstack(filter!).map((filter, position) =>
        runKernel(tf.Conv2D, { x: planesMet(x!, position, depth), filter }, plane)[0]!
      ),
    );
    return tf.reshape(y, [depth.batchSize, depth.outHeight, ...y.shape.slice(1)]);
  });
  register(tf.Conv3DBackpropFilterV2, ({ x, dy }, attributes) => {
    const filterShape: number[] = attributes.filterShape;
    const depth = depthInfo(x!.shape, filterShape, attributes);
    const plane = { ...planeAttributes(attributes), filterShape: filterShape.slice(1) };
    const gradients = Array.from({ length: filterShape[0]! }, (_, position) => {
      const inputs = { x: planesMet(x!, position, depth), dy: asPlanes(dy!) };
      return runKernel(tf.Conv2DBackpropFilter, inputs, plane)[0]!;
    });
    return tf.stack(gradients);
  });
  register(tf.Conv3DBackpropInputV2, ({ dy, filter }, attributes) => {
    const inputShape: number[] = attributes.inputShape;
    const depth = depthInfo(inputShape, filter!.shape, attributes);
    const [batch, images] = [depth.batchSize, depth.outHeight];
    const plane = { ...planeAttributes(attributes), inputShape: [batch * images, ...inputShape.slice(2)] };
    const parts = tf.unstack(filter!).map((filter, position) => {
      const gradients = runKernel(tf.Conv2DBackpropInput, { dy: asPlanes(dy!), filter }, plane)[0]!;
      const columns = asColumns(tf.reshape(gradients, [batch, images, ...inputShape.slice(2)]));
      return returned(columns, position, 0, depth);
    });
    return tf.reshape(sum(parts), inputShape);
  });
}

/** How the filter goes along depth, over `asColumns`. */
function depthInfo(inputShape: number[], filterShape: number[], attributes: Attributes): Info {
  const [batch, depth, height, width, channels] = inputShape as [number, number, number, number, number];
  return convolutionInfo([batch, depth, height * width, channels], [filterShape[0]!, 1, channels, 1], {
    strides: [three(attributes.strides)[0], 1],
    dilations: [three(attributes.dilations ?? 1)[0], 1],
    pad: columnPadding(attributes.pad),
  });
}

/** How it goes over planes. */
function planeAttributes({ strides, pad, dilations }: Attributes) {
  const over = (sizes: Three) => three(sizes).slice(1);
  return { strides: over(strides), pad, dilations: over(dilations ?? 1), dataFormat: "NHWC" };
}

/** The planes that one position of the filter along depth meets. */
function planesMet(x: tf.Tensor, position: number, depth: Info): tf.Tensor4D {
  const columns = met(covered(asColumns(x), depth), position, 0, depth);
  return asPlanes(tf.reshape(columns, [depth.batchSize, depth.outHeight, ...x.shape.slice(2)]));
}

function sum(parts: tf.Tensor[]): tf.Tensor {
  return parts.reduce((sum, part) => tf.add(sum, part));
}
