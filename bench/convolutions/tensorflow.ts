/**
 * What the rule of `runtime/tensorflow/kernels/lowering.ts` chooses between: every convolution of a model,
 * its three parts, each in every way that is right for it, on one core.
 * @module
 */
import { pinToCore } from "../../runtime/machine/affinity.ts";
import { allowedCores } from "../../runtime/machine/machine.ts";
import { idOf, type NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import { startBackend } from "../../runtime/tensorflow/start_backend.ts";
import { CapturedFunction } from "../../runtime/tensorflow/capture/captured_function.ts";
import { Context } from "../../runtime/tensorflow/binding/context.ts";
import { TF_FLOAT } from "../../runtime/tensorflow/binding/dtypes.ts";
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { GraphRecorder } from "../../runtime/tensorflow/binding/graph_recorder.ts";
import type { Argument } from "../../runtime/tensorflow/binding/graph_tensor.ts";
import {
  type Lowering,
  lowering,
  possibleLowerings,
  setLowerings,
  withLowering,
} from "../../runtime/tensorflow/kernels/lowering.ts";
import { newHandle } from "../../runtime/tensorflow/binding/tensor.ts";
import { sizeOf } from "../../ring/dtype.ts";
import { engine } from "../../stages/tfjs.ts";
import { median } from "../median.ts";
import {
  type ConvolutionOptions,
  type ConvolutionPart,
  convolutionShapes,
  describe,
  flopsOf,
  PARTS,
  runPart,
  type Shape,
} from "./shapes.ts";
import type { ConvolutionTiming } from "./table.ts";
import type { Progress } from "../../cli/progress.ts";

const REPEATS = 9;

/** Measures all of a model's convolutions for a micro-batch. @throws {Error} without libtensorflow */
export async function measureConvolutions(
  options: ConvolutionOptions,
  progress: Progress,
): Promise<ConvolutionTiming[]> {
  const found = findTensorflow();
  if (!found) throw new Error('Found no libtensorflow to measure; fetch it with "deno task setup"');
  const shapes = convolutionShapes(options);
  pinToCore(allowedCores()[0]!);
  const backend = await startBackend(new Context({ libraries: found, device: "cpu" }));
  setLowerings(true);
  const timings: ConvolutionTiming[] = [];
  for (const [i, shape] of shapes.entries()) {
    const { info, count } = shape;
    progress.tick([i, shapes.length], describe(info));
    for (const part of PARTS) {
      const ms: Partial<Record<Lowering, number>> = {};
      for (const way of possibleLowerings(info, part)) {
        ms[way] = withLowering(way, () => time(backend, shape, part));
      }
      const chosen = lowering(info, part);
      timings.push({ shape: describe(info), count, part, flops: flopsOf(info), ms, chosen });
    }
  }
  return timings;
}

/** Captures one part and times calls of it: the median, in milliseconds. */
function time(backend: NodeBackend, shape: Shape, part: ConvolutionPart): number {
  const { info } = shape;
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
  const inputsOf = {
    x: () => argument("x", info.inShape),
    filter: () => argument("filter", info.filterShape),
    dy: () => argument("dy", info.outShape),
  };
  const outputs = binding.record(
    graph,
    () => runPart(part, shape, inputsOf).map((t) => binding.resolve(idOf(backend, t))),
  );
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
