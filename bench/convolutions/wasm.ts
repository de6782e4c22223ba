/**
 * The engine "wasm": every convolution of a model, its three parts, by the stock backend where that has it, by
 * compositions of the stock backend's kernels, and by Stagger's own WebAssembly. On one core.
 * @module
 */
import { tf } from "../../deps.ts";
import { pinToCore } from "../../runtime/machine/affinity.ts";
import { allowedCores } from "../../runtime/machine/machine.ts";
import { BACKEND } from "../../runtime/wasm/backend.ts";
import { registerSimdKernels } from "../../runtime/wasm/kernels/simd/register.ts";
import { Simd } from "../../runtime/wasm/simd/simd.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { median } from "../median.ts";
import type { Progress } from "../../cli/progress.ts";
import { type ConvolutionOptions, convolutionShapes, describe, flopsOf, PARTS, runPart } from "./shapes.ts";
import type { ConvolutionTiming } from "./table.ts";

const REPEATS = 5;
const KERNELS = [tf.Conv2D, tf.Conv2DBackpropInput, tf.Conv2DBackpropFilter, tf.BatchMatMul];

type Kernels = (tf.KernelConfig | undefined)[];

/** Measures all of a model's convolutions for a micro-batch; the ways take turns. */
export async function measureConvolutions(
  options: ConvolutionOptions,
  progress: Progress,
): Promise<ConvolutionTiming[]> {
  pinToCore(allowedCores()[0]!);
  await import("npm:@tensorflow/tfjs-backend-wasm@4.22.0");
  const stock = current();
  const { backend } = await startBackend({ ownKernels: false });
  const composed = current();
  const simd = Simd.start(backend);
  if (!simd) throw new Error("Cannot measure Stagger's kernels: WebAssembly lacks relaxed SIMD here");
  registerSimdKernels(simd);
  const ways = { stock, composed, own: current() };
  const shapes = convolutionShapes(options);
  const timings: ConvolutionTiming[] = [];
  for (const [i, shape] of shapes.entries()) {
    const { info, count } = shape;
    progress.tick([i, shapes.length], describe(info));
    const [x, filter, dy] = [info.inShape, info.filterShape, info.outShape].map((s) => tf.randomNormal(s));
    const inputs = { x: () => x!, filter: () => filter!, dy: () => dy! };
    for (const [at, part] of PARTS.entries()) {
      const able = Object.entries(ways).filter(([, kernels]) => kernels[at]);
      const times: Record<string, number[]> = Object.fromEntries(able.map(([way]) => [way, []]));
      for (let repeat = 0; repeat <= REPEATS; repeat++) {
        for (const [way, kernels] of able) {
          use(kernels);
          const start = performance.now();
          tf.dispose(runPart(part, shape, inputs));
          if (repeat > 0) times[way]!.push(performance.now() - start);
        }
      }
      const ms = Object.fromEntries(Object.entries(times).map(([way, list]) => [way, median(list)]));
      timings.push({ shape: describe(info), count, part, flops: flopsOf(info), ms, chosen: "own" });
    }
    tf.dispose([x!, filter!, dy!]);
  }
  return timings;
}

function current(): Kernels {
  return KERNELS.map((name) => tf.getKernel(name, BACKEND));
}

function use(kernels: Kernels): void {
  KERNELS.forEach((name, i) => {
    if (tf.getKernel(name, BACKEND)) tf.unregisterKernel(name, BACKEND);
    if (kernels[i]) tf.registerKernel(kernels[i]);
  });
}
