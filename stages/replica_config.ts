/** A replica: the whole model on one device, in segments that run one after another. @module */
import { align, sizeOf } from "../ring/dtype.ts";
import { type ModelGraph, refKey } from "./graph.ts";
import { MOMENTS } from "./layers/sync_batch_normalization.ts";
import { segmentsOf, synchronized } from "./segments.ts";
import { type StageConfig, stageConfigs, type StageOutput, type WeightLayout } from "./stage_config.ts";

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
/** Elements of a cache line: where sums begin. */
const LINE = 16;

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
    const gradients = weights.reduce((sum, w) => w.trainable ? sum + align(sizeOf(w.shape), LINE) : sum, 0);
    const channels = layers.flatMap((layer) => layer.weights).reduce(
      (sum, { name, shape }) => name.endsWith("moving_mean") ? sum + sizeOf(shape) : sum,
      0,
    );
    return gradients + align(STATISTICS * MOST_CALLS * channels, LINE);
  });
  const moments = new Map<string, { forward: number; backward: number }>();
  for (const { outputs, layers } of segments) {
    for (const output of outputs) {
      if (!isMoments(output, layers)) continue;
      const layer = layers.find(({ name }) => name === output.ref.layer)!;
      const length = sizeOf(layer.nodes[output.ref.node]!.outputs[0]!.shape as number[]);
      moments.set(refKey(output.ref), {
        forward: lengths.push(length) - 1,
        backward: lengths.push(length) - 1,
      });
    }
  }
  return { lengths, moments };
}

/** Whether an output is a BatchNormalization's moments, which replicas add up. */
function isMoments({ ref }: StageOutput, layers: StageConfig["layers"]): boolean {
  return layers.find(({ name }) => name === ref.layer)?.className === MOMENTS;
}
