/** Chooses where a model is cut, so that the slowest stage is as fast as it can be. @module */
import type { TensorSpec } from "../../ring/dtype.ts";
import { balance, type LayerCost, totalCost } from "../../stages/balance.ts";
import { crossingBytes, estimateCosts } from "../../stages/cost.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { type Partition, stageOf } from "../../stages/partition.ts";

/** What is needed to choose. */
export interface PartitionRequest {
  readonly graph: ModelGraph;
  readonly stages: number;
  /** Tensors of one micro-batch, by `refKey`. */
  readonly specs: ReadonlyMap<string, TensorSpec>;
  /** Measured costs by layer, in place of estimates. */
  readonly measured?: Readonly<Record<string, LayerCost>>;
}

/** Partitions measured beyond the first. */
const MAX_CORRECTIONS = 2;
/** What a correction must promise to be tried. */
const GAIN = 0.99;

/** The partition that is best by the layers' costs. */
export function balancePartition({ graph, stages, specs, measured }: PartitionRequest): Partition {
  return balance(graph, layerCosts({ graph, stages, specs, measured }), stages, crossingBytes(graph, specs));
}

/**
 * Measures whole stages and corrects the layers' costs by what they really take: layers cost more or less in
 * company than alone. Of those measured, the partition whose slowest stage has the smallest share of the whole wins.
 *
 * @param measureStages answers with the cost of each stage of a partition, all at work at once
 */
export async function refinePartition(
  request: PartitionRequest,
  measureStages: (partition: Partition) => Promise<number[]>,
): Promise<Partition> {
  const { graph, stages, specs } = request;
  const bytes = crossingBytes(graph, specs);
  let costs = layerCosts(request);
  let partition = balance(graph, costs, stages, bytes);
  let best: { partition: Partition; share: number } | undefined;
  for (let correction = 0;; correction++) {
    const measured = await measureStages(partition);
    const slowest = Math.max(...measured);
    // The stages were measured at once, the partitions one after the other: the machine may have changed meanwhile.
    const share = slowest / measured.reduce((sum, ms) => sum + ms, 0);
    if (!best || share < best.share) best = { partition, share };
    if (correction === MAX_CORRECTIONS) break;
    const sums = stageSums(costs, partition, stages);
    costs = costs.map((cost, i) => {
      const stage = stageOf(partition, i);
      const factor = sums[stage]! > 0 ? measured[stage]! / sums[stage]! : 1;
      return { F: cost.F * factor, B: cost.B * factor, W: cost.W * factor };
    });
    const next = balance(graph, costs, stages, bytes);
    const promised = Math.max(...stageSums(costs, next, stages));
    if (next.cuts.join() === partition.cuts.join() || promised > slowest * GAIN) break;
    partition = next;
  }
  return best.partition;
}

function layerCosts({ graph, specs, measured }: PartitionRequest): LayerCost[] {
  if (!measured) return estimateCosts(graph, specs);
  return graph.layers.map(({ name }) => measured[name] ?? { F: 0, B: 0, W: 0 });
}

function stageSums(costs: readonly LayerCost[], partition: Partition, stages: number): number[] {
  const sums = new Array<number>(stages).fill(0);
  costs.forEach((cost, i) => sums[stageOf(partition, i)]! += totalCost(cost));
  return sums;
}
