/** Where and how a comparison ran, in a line each. @module */
import type { MachineInfo } from "../../runtime/machine/machine.ts";
import type { BenchResults, Resnet50Results } from "../results.ts";

/** "ResNet50, 64x64 images, batch 32 in 8 micro-batches, ..." */
export function describeSettings(results: Resnet50Results): string {
  const { classes, loss, data, steps } = results.settings;
  return `ResNet50, ${describeBatch(results)}, ${classes} classes, ${loss}, ${data} data, ${
    steps === 1 ? "1 step" : `${steps} steps`
  }`;
}

/** "64x64 images, batch 32 in 8 micro-batches"; nothing is cut without a pipeline. */
export function describeBatch({ settings, pipeline }: Resnet50Results): string {
  const { size, batch, microBatches } = settings;
  return `${size}x${size} images, batch ${batch}${pipeline ? ` in ${microBatches} micro-batches` : ""}`;
}

/** "2 devices (cpu:0, cpu:1), engine tensorflow" */
export function describeDevices(results: BenchResults): string {
  const devices = results.resnet50?.settings.devices ?? [];
  const list = devices.length === 0 ? "" : ` (${devices.join(", ")})`;
  return `${devices.length} ${devices.length === 1 ? "device" : "devices"}${list}, engine ${results.engine}`;
}

/** "Intel Xeon, 2 cores, 8.4 GB, linux, Deno 2.9.6" */
export function describeMachine({ cpu, cores, memory, gpus, os, deno }: MachineInfo): string {
  const gpu = gpus.length === 0 ? "no GPU" : gpus.join(" + ");
  return `${cpu}, ${cores} ${cores === 1 ? "core" : "cores"}, ${
    (memory / 1e9).toFixed(1)
  } GB, ${gpu}, ${os}, Deno ${deno}`;
}
