/**
 * Poolings of volumes and their gradients: a pooling of each plane, then one along depth. The backend's own
 * maximum is never below zero, and its gradients are wrong.
 * @module
 */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { register } from "./kernel.ts";
import { type PoolAttributes, poolInfo } from "./pixels.ts";
import {
  asColumns,
  asPlanes,
  columnPadding,
  type Padding,
  planePadding,
  type Three,
  three,
} from "./volumes.ts";

interface Attributes {
  readonly filterSize: Three;
  readonly strides: Three;
  readonly pad: Padding;
  readonly dimRoundingMode?: "floor" | "round" | "ceil";
}

/** One of the two poolings that make one of volumes. */
interface Pass {
  readonly attributes: PoolAttributes;
  /** The volume as images. */
  lay(x: tf.Tensor): tf.Tensor4D;
  /** The shape of the volume that `pooled` images are, pooled from a volume of shape `from`. */
  volume(pooled: number[], from: number[]): number[];
}

/** Registers maximum and average, both ways. */
export function registerPool3d(): void {
  register(tf.MaxPool3D, ({ x }, attributes) => {
    const [planes, depth] = passes(attributes);
    return pool(tf.MaxPool, pool(tf.MaxPool, numbers(x!), planes), depth);
  });
  register(tf.AvgPool3D, ({ x }, attributes) => {
    const [planes, depth] = passes(attributes);
    return pool(tf.AvgPool, pool(tf.AvgPool, x!, planes), depth);
  });
  register(tf.MaxPool3DGrad, ({ dy, input, output }, attributes) => {
    const [planes, depth] = passes(attributes);
    const between = pool(tf.MaxPool, input!, planes);
    const gradient = unpool(tf.MaxPoolGrad, { dy: dy!, input: between, output: output! }, depth);
    return unpool(tf.MaxPoolGrad, { dy: gradient, input: input!, output: between }, planes);
  });
  register(tf.AvgPool3DGrad, ({ dy, input }, attributes) => {
    const [planes, depth] = passes(attributes);
    const between = pool(tf.AvgPool, input!, planes);
    const gradient = unpool(tf.AvgPoolGrad, { dy: dy!, input: between }, depth);
    return unpool(tf.AvgPoolGrad, { dy: gradient, input: input! }, planes);
  });
}

function passes({ filterSize, strides, pad, dimRoundingMode }: Attributes): [planes: Pass, depth: Pass] {
  const [filter, stride] = [three(filterSize), three(strides)];
  return [
    {
      attributes: {
        filterSize: [filter[1], filter[2]],
        strides: [stride[1], stride[2]],
        pad: planePadding(pad),
        dimRoundingMode,
      },
      lay: asPlanes,
      volume: ([, height, width], [batch, depth, , , channels]) =>
        [batch, depth, height, width, channels] as number[],
    },
    {
      attributes: {
        filterSize: [filter[0], 1],
        strides: [stride[0], 1],
        pad: columnPadding(pad),
        dimRoundingMode,
      },
      lay: asColumns,
      volume: ([, depth], [batch, , height, width, channels]) =>
        [batch, depth, height, width, channels] as number[],
    },
  ];
}

function pool(kernel: string, x: tf.Tensor, { lay, volume, attributes }: Pass): tf.Tensor {
  const images = lay(x);
  const outShape = poolInfo(images.shape, attributes).outShape.map((size) => Math.max(0, size));
  const pooled = outShape.includes(0)
    ? tf.tensor([], outShape) // no window fits
    : runKernel(kernel, { x: images }, { ...attributes })[0]!;
  return tf.reshape(pooled, volume(pooled.shape, x.shape));
}

/** The gradient of `pool`; its inputs are volumes. */
function unpool(kernel: string, volumes: Record<string, tf.Tensor>, { lay, attributes }: Pass): tf.Tensor {
  const images = Object.fromEntries(Object.entries(volumes).map(([name, x]) => [name, lay(x)]));
  return tf.reshape(runKernel(kernel, images, { ...attributes })[0]!, volumes.input!.shape);
}

/** What is no number is never the maximum, as everywhere in TensorFlow.js. */
function numbers(x: tf.Tensor): tf.Tensor {
  return tf.where(tf.isNaN(x), tf.fill(x.shape, -Infinity), x);
}
