/** Measures a model's layers on the devices of a run, all at work at once as when they are stages. @module */
import type { LayerCost } from "../../stages/balance.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import type { Gauge } from "../gauge.ts";
import { fewestInFlight, largestFitting, memoryNeeded } from "./memory_fit.ts";
import type { BatchShape } from "./micro_batches.ts";
import type { StageWorkers } from "./stage_workers.ts";
import type { Workloads } from "./workloads.ts";

/** What a profile is made with. */
export interface LayerProfileOptions {
  readonly workers: StageWorkers;
  readonly workloads: Workloads;
  /** The whole model as a stage, as each worker has built it. */
  readonly whole: StageConfig;
  /** What the stages will be fed. */
  readonly shape: BatchShape;
}

/** The most samples, up to `most`, with which the whole model can be trained in every device's memory. */
export async function largestMeasurable(options: LayerProfileOptions, most: number): Promise<number> {
  const memory = await options.workers.all((link) => link.call("memory", workloadOf(options, most, true)));
  return largestFitting(
    most,
    (samples) => memory.every((own) => !own || memoryNeeded(own, fewestInFlight(1, 1), samples) <= own.limit),
  );
}

/** Milliseconds of every layer for a micro-batch of so many samples: the median of the devices. */
export async function measureLayers(
  options: LayerProfileOptions,
  samples: number,
): Promise<Record<string, LayerCost>> {
  const workload = workloadOf(options, samples, true);
  const profiles = await options.workers.all((link) => link.call("profile", workload, []));
  const of = (layer: string, part: keyof LayerCost) =>
    median(profiles.map(({ costs }) => costs[layer]?.[part] ?? 0));
  return Object.fromEntries(
    options.workloads.graph.layers.map(({ name }) => [name, {
      F: of(name, "F"),
      B: of(name, "B"),
      W: of(name, "W"),
    }]),
  );
}

/** Times of whole steps, likewise; W apart from B where the schedule has it so. */
export async function gauge(options: LayerProfileOptions, samples: number): Promise<Gauge> {
  const workload = workloadOf(options, samples, options.workloads.splits(options.shape));
  const gauges = await options.workers.all((link) => link.call("gauge", workload));
  const of = (part: keyof Gauge) => median(gauges.map((gauge) => gauge[part]));
  return { F: of("F"), B: of("B"), W: of("W"), U: of("U"), host: of("host"), copyPerByte: of("copyPerByte") };
}

function workloadOf({ workloads, whole, shape }: LayerProfileOptions, samples: number, split: boolean) {
  return workloads.of(whole, shape, samples, { split, weightBatches: [] });
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1]!;
}
