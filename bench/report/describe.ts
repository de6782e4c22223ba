/** Where and how a comparison ran, in a line each. @module */
import type { MachineInfo } from "../../runtime/machine/machine.ts";
import type { BenchResults, Resnet50Results, UnetResults } from "../results.ts";

/** "ResNet50, 64x64 images, batch 32 in 8 micro-batches, ..." */
export function describeResnet50(results: Resnet50Results): string {
  const { classes, loss, data, steps } = results.settings;
  return `ResNet50, ${describeBatch(results)}, ${classes} classes, ${loss}, ${data} data, ${
    counted(steps, "step")
  }`;
}

/** "U-Net with a ResNet34 encoder, 64x64 images, batch 16, ..." */
export function describeUnet({ settings }: UnetResults): string {
  const { size, batch, loss, optimizer, data, steps, samples, stepsPerEpoch } = settings;
  return `U-Net with a ResNet34 encoder, ${size}x${size} images, batch ${batch}, ${loss}, ${optimizer}, ${data} data, ${
    counted(steps, "step")
  }; an epoch: ${counted(samples, "image")} in ${counted(stepsPerEpoch, "step")}`;
}

/** "64x64 images, batch 32 in 8 micro-batches"; nothing is cut without a pipeline. */
export function describeBatch({ settings, pipeline }: Resnet50Results): string {
  const { size, batch, microBatches } = settings;
  return `${size}x${size} images, batch ${batch}${pipeline ? ` in ${microBatches} micro-batches` : ""}`;
}

/** "2 devices (cpu:0, cpu:1), engine tensorflow" */
export function describeDevices(
  devices: readonly string[],
  { engine }: Pick<BenchResults, "engine">,
): string {
  const list = devices.length === 0 ? "" : ` (${devices.join(", ")})`;
  return `${counted(devices.length, "device")}${list}, engine ${engine}`;
}

/** "Intel Xeon, 2 cores, 8.4 GB, linux, Deno 2.9.6" */
export function describeMachine({ cpu, cores, memory, gpus, os, deno }: MachineInfo): string {
  const gpu = gpus.length === 0 ? "no GPU" : gpus.join(" + ");
  return `${cpu}, ${counted(cores, "core")}, ${(memory / 1e9).toFixed(1)} GB, ${gpu}, ${os}, Deno ${deno}`;
}

/** Said of a run that Ctrl-C ended. */
export const INTERRUPTED =
  "interrupted before its end: these are the figures of what was measured until then";

/** "1 step", "2 steps" */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
