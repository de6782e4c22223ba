/**
 * Predicts what a step takes for any partition and split size, from one profile of the layers: the stages' times
 * are sums over their layers, and the schedule is played with them.
 *
 * What stages at work at once take from each other is in the profile, which all devices make at once.
 * @module
 */
import { type GraphLayer, type ModelGraph, refKey } from "../../stages/graph.ts";
import { type Partition, stageOf } from "../../stages/partition.ts";
import { linksOf, type Route, routesOf } from "../../stages/routes.ts";
import { byteLengthOf } from "../../ring/dtype.ts";
import { makeSchedule, type ScheduleName } from "../schedules/schedules.ts";
import { simulate, type StageTimes } from "../schedules/simulate.ts";
import type { LayerCurves } from "./layer_curves.ts";

/** What predictions are made from. Times are seconds. */
export interface CostModel {
  readonly graph: ModelGraph;
  readonly curves: LayerCurves;
  /** Bytes of one sample of each tensor, by `refKey`. */
  readonly sampleBytes: ReadonlyMap<string, number>;
  /** Around each action, outside the engine. */
  readonly hostSeconds: number;
  /** Of sending to another stage. */
  readonly secondsPerByteSent: number;
  /** Of the update, by bytes of weights that are trained. */
  readonly secondsPerByteUpdated: number;
}

/** One way to cut a model and its batches. */
export interface Cut {
  readonly partition: Partition;
  /** Samples in a micro-batch. */
  readonly splitSize: number;
}

/** Batches, and the order in which stages work on their micro-batches. */
export interface StepPlan {
  readonly batchSize: number;
  readonly schedule: ScheduleName;
}

/**
 * Seconds that one micro-batch takes on each stage; the time of a message counts where it is sent from.
 *
 * @param samples in it, or their mean
 */
export function stageTimes(
  model: CostModel,
  partition: Partition,
  samples: number,
  routes: readonly Route[] = routesOf(model.graph, partition),
): StageTimes[] {
  const { graph, curves, sampleBytes, hostSeconds, secondsPerByteSent, secondsPerByteUpdated } = model;
  const stages = Array.from({ length: partition.cuts.length + 1 }, () => ({
    F: hostSeconds,
    B: hostSeconds,
    W: 0,
    U: hostSeconds,
  }));
  for (const { ref, from, to, needsGradient } of routes) {
    const seconds = (sampleBytes.get(refKey(ref)) ?? 0) * samples * secondsPerByteSent;
    stages[from]!.F += seconds;
    if (needsGradient) stages[to]!.B += seconds;
  }
  graph.layers.forEach((layer, i) => {
    const stage = stages[stageOf(partition, i)]!;
    const { F, B, W } = curves.at(layer.name, samples);
    stage.F += F;
    stage.B += B;
    stage.W += W;
    stage.U += trainedBytes(layer) * secondsPerByteUpdated;
  });
  return stages;
}

/** Seconds of one step. */
export function stepSeconds(
  model: CostModel,
  { partition, splitSize }: Cut,
  { batchSize, schedule }: StepPlan,
): number {
  const microBatches = Math.ceil(batchSize / splitSize);
  const routes = routesOf(model.graph, partition);
  const times = stageTimes(model, partition, batchSize / microBatches, routes);
  const stages = times.length;
  const actions = makeSchedule(stages === 1 ? "1f1b" : schedule, { stages, microBatches, times });
  return simulate(actions, { times, links: linksOf(routes) }).makespan;
}

/** Bytes of weights that a layer trains. */
export function trainedBytes(layer: GraphLayer): number {
  return layer.weights.reduce((sum, weight) => sum + (weight.trainable ? byteLengthOf(weight) : 0), 0);
}
