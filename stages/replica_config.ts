/** A replica: the whole model on one device, in segments that run one after another. @module */
import { sizeOf } from "../ring/dtype.ts";
import { packed } from "../ring/packed.ts";
import { type ModelGraph, refKey } from "./graph.ts";
import { MOMENTS } from "./layers/sync_batch_normalization.ts";
import { segmentsOf, synchronized } from "./segments.ts";
import { type StageConfig, stageConfigs, type WeightLayout } from "./stage_config.ts";

/** How a replica is cut. */
export interface ReplicaOptions {
  /** Trained weights in a segment, in bytes, but for the first. */
  readonly bucketBytes: number;
  /** Whether BatchNormalization's statistics are those of all replicas. */
  readonly syncBatchNorm: boolean;
}

/** Calls of one BatchNormalization in a forward for whose statistics there is room. */
const MOST_CALLS = 8;
/** What is added up for each channel of a BatchNormalization. */
const STATISTICS = 3;

/**
 * The one stage of a replica. Its inputs and outputs are those of its segments, in their order: a tensor of the
 * model that two segments need is an input of each.
 */
export function replicaConfig(graph: ModelGraph, layout: WeightLayout, options: ReplicaOptions): StageConfig {
  const { graph: parted, forced } = options.syncBatchNorm ? synchronized(graph) : { graph, forced: [] };
  const segments = stageConfigs(parted, segmentsOf(parted, options.bucketBytes, forced), layout);
  return {
    index: 0,
    count: 1,
    layers: graph.layers,
    inputs: segments.flatMap(({ inputs }) => inputs.filter(({ modelInput }) => modelInput !== undefined)),
    outputs: [],
    modelOutputs: segments.flatMap(({ modelOutputs }) => modelOutputs),
    weights: segments.flatMap(({ weights }) => weights),
    segments,
  };
}

/** Where each of a replica's sums has its place in the group of all replicas. */
export interface SumSlots {
  /** Elements that each slot holds. */
  readonly lengths: readonly number[];
  /** Slot of the moments that a segment sends, and of their gradient, by `refKey`. */
  readonly moments: ReadonlyMap<string, { readonly forward: number; readonly backward: number }>;
}

/** A slot for each segment's gradients and statistics, then two for each BatchNormalization's moments. */
export function sumSlots(segments: readonly StageConfig[]): SumSlots {
  const lengths = segments.map(({ weights, layers }) => {
    const gradients = weights.filter(({ trainable }) => trainable).map(({ shape }) => sizeOf(shape));
    const means = layers.flatMap((layer) => layer.weights).filter(({ name }) => name.endsWith("moving_mean"));
    const channels = means.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
    return packed([...gradients, STATISTICS * MOST_CALLS * channels]).length;
  });
  const moments = new Map<string, { forward: number; backward: number }>();
  for (const { outputs, layers } of segments) {
    for (const { ref } of outputs) {
      const layer = layers.find(({ name }) => name === ref.layer)!;
      if (layer.className !== MOMENTS) continue;
      const length = sizeOf(layer.nodes[ref.node]!.outputs[0]!.shape as number[]);
      moments.set(refKey(ref), { forward: lengths.push(length) - 1, backward: lengths.push(length) - 1 });
    }
  }
  return { lengths, moments };
}
