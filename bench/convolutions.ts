/**
 * What the rule of `runtime/tensorflow/kernels/lowering.ts` chooses between: every convolution of ResNet50, its
 * three parts, each in every way that is right for it, on one core.
 * @module
 */
import { tf } from "../deps.ts";
import { pinToCore } from "../runtime/machine/affinity.ts";
import { allowedCores } from "../runtime/machine/machine.ts";
import { idOf, type NodeBackend } from "../runtime/tensorflow/binding/backend.ts";
import { startBackend } from "../runtime/tensorflow/start_backend.ts";
import { CapturedFunction } from "../runtime/tensorflow/capture/captured_function.ts";
import { Context } from "../runtime/tensorflow/binding/context.ts";
import { TF_FLOAT } from "../runtime/tensorflow/binding/dtypes.ts";
import { findTensorflow } from "../runtime/tensorflow/library/find.ts";
import { GraphRecorder } from "../runtime/tensorflow/binding/graph_recorder.ts";
import type { Argument } from "../runtime/tensorflow/binding/graph_tensor.ts";
import {
  type ConvolutionPart,
  type Lowering,
  lowering,
  possibleLowerings,
  setLowerings,
  withLowering,
} from "../runtime/tensorflow/kernels/lowering.ts";
import { newHandle } from "../runtime/tensorflow/binding/tensor.ts";
import { sizeOf } from "../ring/dtype.ts";
import { engine, internals, runKernel } from "../stages/tfjs.ts";
import { resnet50 } from "../stages/resnet50.ts";
import { median } from "./contestant.ts";
import type { Progress } from "./progress.ts";

/** One convolution, one part, timed. */
export interface ConvolutionTiming {
  /** "256 to 64, 1x1/1, 32x32 in". */
  readonly shape: string;
  /** How often ResNet50 has it. */
  readonly count: number;
  readonly part: ConvolutionPart;
  /** Milliseconds by lowering. */
  readonly ms: Readonly<Partial<Record<Lowering, number>>>;
  /** What the rule chooses. */
  readonly chosen: Lowering;
}

const REPEATS = 9;
const PARTS: readonly ConvolutionPart[] = ["forward", "inputGradient", "filterGradient"];

/** Measures all of ResNet50's convolutions for a micro-batch. @throws {Error} without libtensorflow */
export async function measureConvolutions(
  size: number,
  batch: number,
  progress: Progress,
): Promise<ConvolutionTiming[]> {
  const found = findTensorflow();
  if (!found) throw new Error('Found no libtensorflow to measure; fetch it with "deno task setup"');
  const shapes = convolutionShapes(size, batch);
  pinToCore(allowedCores()[0]!);
  const backend = await startBackend(new Context({ libraries: found, device: "cpu" }));
  setLowerings(true);
  const timings: ConvolutionTiming[] = [];
  for (const [i, { info, count, attrs }] of shapes.entries()) {
    progress.tick([i, shapes.length], describe(info));
    for (const part of PARTS) {
      const ms: Partial<Record<Lowering, number>> = {};
      for (const way of possibleLowerings(info, part)) {
        ms[way] = withLowering(way, () => time(backend, info, attrs, part));
      }
      timings.push({ shape: describe(info), count, part, ms, chosen: lowering(info, part) });
    }
  }
  return timings;
}

/** The timings as text: the rule's choice in brackets, and what it loses against the best of them. */
export function convolutionTable(timings: readonly ConvolutionTiming[]): string {
  const lines = timings.map(({ shape, count, part, ms, chosen }) => {
    const ways = Object.entries(ms).map(([way, t]) =>
      way === chosen ? `[${way} ${t.toFixed(2)}]` : `${way} ${t.toFixed(2)}`
    );
    return `${shape.padEnd(28)} x${count}  ${part.padEnd(15)} ${ways.join("  ")}`;
  });
  const total = (pick: (t: ConvolutionTiming) => number) =>
    timings.reduce((sum, t) => sum + t.count * pick(t), 0);
  const byRule = total(({ ms, chosen }) => ms[chosen]!);
  const best = total(({ ms }) => Math.min(...Object.values(ms)));
  const plain = total(({ ms }) => ms.plain!);
  return [
    ...lines,
    "",
    `milliseconds a micro-batch, all convolutions: plain ${plain.toFixed(0)}, by the rule ${
      byRule.toFixed(0)
    }, ` +
    `best of each ${best.toFixed(0)}`,
  ].join("\n");
}

type Info = tf.backend_util.Conv2DInfo;
type Shape4D = [number, number, number, number];

interface Shape {
  readonly info: Info;
  readonly attrs: Record<string, unknown>;
  count: number;
}

/** The different convolutions of the model. */
function convolutionShapes(size: number, batch: number): Shape[] {
  const model = resnet50({ inputShape: [size, size, 3], classes: 10, seed: 1 });
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

function describe(info: Info): string {
  return `${info.inChannels} to ${info.outChannels}, ${info.filterHeight}x${info.filterWidth}/${info.strideHeight}, ` +
    `${info.inHeight}x${info.inWidth} in`;
}

/** Captures one part and times calls of it: the median, in milliseconds. */
function time(
  backend: NodeBackend,
  info: Info,
  attrs: Record<string, unknown>,
  part: ConvolutionPart,
): number {
  const { binding } = backend;
  const { context } = binding;
  const graph = new GraphRecorder(context, "convolution");
  const sources = new Map<Argument, number[]>();
  const e = engine();
  e.startScope("bench");
  const argument = (label: string, shape: number[]) => {
    const source: Argument = { kind: "argument", label };
    sources.set(source, shape);
    return backend.createOutputTensor(binding.argument(graph, source, TF_FLOAT, shape));
  };
  const x = () => argument("x", info.inShape);
  const filter = () => argument("filter", info.filterShape);
  const dy = () => argument("dy", info.outShape);
  const kernels: Record<ConvolutionPart, () => tf.Tensor[]> = {
    forward: () => runKernel(tf.Conv2D, { x: x(), filter: filter() }, attrs),
    inputGradient: () =>
      runKernel(tf.Conv2DBackpropInput, { dy: dy(), filter: filter() }, {
        ...attrs,
        inputShape: info.inShape,
      }),
    filterGradient: () =>
      runKernel(tf.Conv2DBackpropFilter, { x: x(), dy: dy() }, { ...attrs, filterShape: info.filterShape }),
  };
  const outputs = binding.record(graph, () => kernels[part]().map((t) => binding.resolve(idOf(backend, t))));
  const f = new CapturedFunction(graph, outputs);
  e.endScope();
  graph.dispose();
  binding.endCapture();
  const inputs = BigUint64Array.from(f.inputs, ({ source }) => {
    const shape = sources.get(source as Argument)!;
    const values = Float32Array.from({ length: sizeOf(shape) }, (_, i) => Math.sin(i));
    return newHandle(context, TF_FLOAT, shape, values);
  });
  const times: number[] = [];
  for (let repeat = 0; repeat <= REPEATS; repeat++) {
    const start = performance.now();
    const results = f.call(inputs);
    if (repeat > 0) times.push(performance.now() - start);
    for (const handle of results) context.tf.TFE_DeleteTensorHandle(handle);
  }
  for (const handle of inputs) context.tf.TFE_DeleteTensorHandle(handle);
  f.dispose();
  return median(times);
}
