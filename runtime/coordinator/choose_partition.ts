/** Chooses where a run's model is cut, measuring on its own workers where the options say so. @module */
import { type LayerCost, totalCost } from "../../stages/balance.ts";
import { type Partition, resolvePartition } from "../../stages/partition.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import { balancePartition, refinePartition } from "./auto_partition.ts";
import { largestMeasurable, measureLayers } from "./layer_profile.ts";
import { type BatchShape, cutBatch } from "./micro_batches.ts";
import type { StageWorkers } from "./stage_workers.ts";
import type { Workloads } from "./workloads.ts";

/**
 * Most samples that layers are measured with where a micro-batch of the whole model does not fit: the step may well
 * be refused in the end, and nobody should wait minutes to hear it.
 */
const FEW_SAMPLES = 32;

/** What a run has to choose with. */
export interface PartitionChoice {
  readonly workers: StageWorkers;
  readonly workloads: Workloads;
  /** What the stages will be fed. */
  readonly shape: BatchShape;
  /** Builds the stages of a partition; with no cuts, each worker gets the whole model. */
  readonly build: (partition: Partition) => Promise<readonly StageConfig[]>;
}

/** The partition that the options ask for, or the balanced one. */
export async function choosePartition(choice: PartitionChoice): Promise<Partition> {
  const { workers, workloads, build } = choice;
  const { graph, options: { partition, devices, replicas, costs } } = workloads;
  if (devices.length === replicas) return { cuts: [] };
  if (partition !== "auto") return resolvePartition(graph, partition, devices.length);
  const shape: BatchShape = { ...choice.shape, mode: "train" };
  const { microBatchSize } = cutBatch(choice.shape, workloads.options);
  const request = { graph, stages: devices.length, specs: workloads.specs(shape, microBatchSize) };
  if (costs === "estimated") return balancePartition(request);
  const { measured, size } = await profile({ ...choice, shape }, microBatchSize);
  return await refinePartition({ ...request, measured }, async (partition) => {
    const stages = await build(partition);
    const split = workloads.splits(shape);
    const times = await workers.all((link, s) => {
      const stage = stages[s]!;
      const workload = workloads.of(stage, shape, size, { split, weightBatches: [] });
      return link.call("measure", workload, workloads.outputGradients(stage, shape, size));
    });
    return times.map(totalCost);
  });
}

/**
 * Measures every layer.
 *
 * @returns `size`: the samples that it was measured with. A device that the whole model does not fit may still hold
 * its stage: fewer samples tell the layers' shares as well.
 */
async function profile(
  { workers, workloads, shape, build }: PartitionChoice,
  microBatchSize: number,
): Promise<{ measured: Record<string, LayerCost>; size: number }> {
  const [whole] = await build({ cuts: [] });
  const options = { workers, workloads, whole: whole!, shape };
  const fitting = await largestMeasurable(options, microBatchSize);
  const size = fitting === microBatchSize ? microBatchSize : Math.max(1, Math.min(fitting, FEW_SAMPLES));
  return { measured: await measureLayers(options, size), size };
}
