/** Chooses where a model is cut. @module */
import type { TensorSpec } from "../ring/dtype.ts";
import { balance, type LayerCost } from "../stages/balance.ts";
import { crossingBytes, estimateCosts } from "../stages/cost.ts";
import type { ModelGraph } from "../stages/graph.ts";
import type { Partition } from "../stages/partition.ts";

/** What is needed to choose. */
export interface PartitionRequest {
  readonly graph: ModelGraph;
  readonly stages: number;
  /** Tensors of one micro-batch, by `refKey`. */
  readonly specs: ReadonlyMap<string, TensorSpec>;
  /** Measured costs by layer, in place of estimates. */
  readonly measured?: Readonly<Record<string, LayerCost>>;
}

/** The partition whose slowest stage is fastest. */
export function choosePartition({ graph, stages, specs, measured }: PartitionRequest): Partition {
  const costs = measured
    ? graph.layers.map(({ name }) => measured[name] ?? { F: 0, B: 0, W: 0 })
    : estimateCosts(graph, specs);
  return balance(graph, costs, stages, crossingBytes(graph, specs));
}
