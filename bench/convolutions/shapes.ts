/** The convolutions of the models that are compared. @module */
import { tf } from "../../deps.ts";
import { resnet50 } from "../../stages/resnet50.ts";
import { internals, runKernel } from "../../stages/tfjs.ts";
import { unet } from "../../stages/unet.ts";

/** What training asks of a convolution. */
export const PARTS = ["forward", "inputGradient", "filterGradient"] as const;

/** One of them. */
export type ConvolutionPart = typeof PARTS[number];

type Info = tf.backend_util.Conv2DInfo;
type Shape4D = [number, number, number, number];

/** A convolution of the model. */
export interface Shape {
  readonly info: Info;
  readonly attrs: Record<string, unknown>;
  /** How often the model has it. */
  count: number;
}

/** Which model's. */
export type ConvolutionModel = "resnet50" | "unet";

/** What is measured. */
export interface ConvolutionOptions {
  readonly model: ConvolutionModel;
  /** Height and width of the images. */
  readonly size: number;
  /** Samples in a micro-batch. */
  readonly batch: number;
}

/** The different convolutions of a model. */
export function convolutionShapes({ model: name, size, batch }: ConvolutionOptions): Shape[] {
  const inputShape = [size, size, 3] as const;
  const model = name === "unet"
    ? unet({ inputShape, seed: 1 })
    : resnet50({ inputShape, classes: 10, seed: 1 });
  const found = new Map<string, Shape>();
  for (const layer of internals(model).layers) {
    if (layer.getClassName() !== "Conv2D") continue;
    const { strides, padding } = layer.getConfig() as unknown as {
      strides: [number, number];
      padding: "same" | "valid";
    };
    const x = [batch, ...layer.inboundNodes[0]!.inputTensors[0]!.shape.slice(1)] as Shape4D;
    const filter = layer.weights[0]!.shape as Shape4D;
    const key = JSON.stringify([x, filter, strides, padding]);
    const info = tf.backend_util.computeConv2DInfo(x, filter, strides, 1, padding);
    const known = found.get(key);
    if (known) known.count++;
    else {found.set(key, {
        info,
        count: 1,
        attrs: { strides, pad: padding, dataFormat: "NHWC", dilations: [1, 1] },
      });}
  }
  model.dispose();
  return [...found.values()];
}

/** "256 to 64, 1x1/1, 32x32 in". */
export function describe(info: Info): string {
  return `${info.inChannels} to ${info.outChannels}, ${info.filterHeight}x${info.filterWidth}/${info.strideHeight}, ` +
    `${info.inHeight}x${info.inWidth} in`;
}

/** Multiplications and additions of each part. */
export function flopsOf({ outShape, filterShape, outChannels }: Info): number {
  return 2 * tf.util.sizeFromShape(outShape) * tf.util.sizeFromShape(filterShape) / outChannels;
}

/** Runs a part. */
export function runPart(
  part: ConvolutionPart,
  { info, attrs }: Shape,
  { x, filter, dy }: { x(): tf.Tensor; filter(): tf.Tensor; dy(): tf.Tensor },
): tf.Tensor[] {
  switch (part) {
    case "forward":
      return runKernel(tf.Conv2D, { x: x(), filter: filter() }, attrs);
    case "inputGradient": {
      const inputs = { dy: dy(), filter: filter() };
      return runKernel(tf.Conv2DBackpropInput, inputs, { ...attrs, inputShape: info.inShape });
    }
    case "filterGradient": {
      const inputs = { x: x(), dy: dy() };
      return runKernel(tf.Conv2DBackpropFilter, inputs, { ...attrs, filterShape: info.filterShape });
    }
  }
}
