/**
 * Segments: the layers of a replica in parts that run one after another on one device. When the last backward of
 * a segment has run, its gradients are whole, and the replicas can add them up while backward goes on.
 * @module
 */
import { byteLengthOf } from "../ring/dtype.ts";
import type { GraphLayer, GraphNode, ModelGraph, TensorRef } from "./graph.ts";
import { MOMENT_ROWS, MOMENTS, SYNC_BATCH_NORM } from "./layers/sync_batch_normalization.ts";
import { allowedCuts, checkPartition, type Partition } from "./partition.ts";

/**
 * Cuts a model so that each segment but the first has at least `bucketBytes` of trained weights, in the order in
 * which backward reaches them: from the end.
 *
 * Source: Li et al., "PyTorch Distributed", 2020, section 3.2: gradients in buckets, as they become ready.
 *
 * @param forced positions where a segment must begin
 */
export function segmentsOf(
  graph: ModelGraph,
  bucketBytes: number,
  forced: readonly number[] = [],
): Partition {
  const allowed = allowedCuts(graph);
  const cuts = new Set(forced);
  let bytes = 0;
  for (let i = graph.layers.length - 1; i > 0; i--) {
    bytes += graph.layers[i]!.weights.reduce((sum, w) => w.trainable ? sum + byteLengthOf(w) : sum, 0);
    if (bytes >= bucketBytes && allowed[i]) cuts.add(i);
    if (cuts.has(i)) bytes = 0;
  }
  return { cuts: [...cuts].sort((a, b) => a - b) };
}

/** A model whose BatchNorm layers are parted, and the moments that replicas add up. */
export interface SynchronizedGraph {
  readonly graph: ModelGraph;
  /** Positions where a segment must begin: moments that come before are needed from there on. */
  readonly forced: readonly number[];
  /** The moments' tensors, with their shape: not batches. */
  readonly moments: readonly { readonly ref: TensorRef; readonly shape: readonly number[] }[];
}

/**
 * Parts each BatchNormalization of a model into its moments and what normalizes by them.
 *
 * @throws {TypeError|RangeError} for one that lies in a nested model or a wrapper, is used several times, or lies
 * between the uses of a shared layer
 */
export function synchronized(graph: ModelGraph): SynchronizedGraph {
  const moments: { ref: TensorRef; shape: number[] }[] = [];
  const forced: number[] = [];
  const layers: GraphLayer[] = [];
  for (const layer of graph.layers) {
    if (layer.className !== "BatchNormalization") {
      if (layer.weights.some(({ name }) => name.endsWith("moving_mean"))) {
        throw new TypeError(
          `Cannot synchronize the BatchNormalization in layer "${layer.name}": expected it among the model's own ` +
            `layers; build the model without nesting, or leave syncBatchNorm out`,
        );
      }
      layers.push(layer);
      continue;
    }
    if (layer.nodes.length > 1) {
      throw new TypeError(
        `Cannot synchronize layer "${layer.name}": it is used ${layer.nodes.length} times, expected once; ` +
          `give each place a BatchNormalization of its own, or leave syncBatchNorm out`,
      );
    }
    const name = `${layer.name}/moments`;
    const axis = layer.config["axis"] as number;
    const shapeOf = ({ outputs }: GraphNode) => {
      const { shape } = outputs[0]!;
      return [MOMENT_ROWS, shape.at(axis)!];
    };
    layers.push({
      index: layer.index,
      name,
      className: MOMENTS,
      config: { name, axis },
      nodes: layer.nodes.map((node) => ({
        inputs: node.inputs,
        outputs: [{ shape: shapeOf(node), dtype: "float32" }],
        callArgs: {},
      })),
      weights: [],
      masks: false,
    });
    forced.push(layers.length);
    layers.push({
      ...layer,
      className: SYNC_BATCH_NORM,
      nodes: layer.nodes.map((node, i) => {
        const ref = { layer: name, node: i, tensor: 0 };
        moments.push({ ref, shape: shapeOf(node) });
        return { ...node, inputs: [...node.inputs, ref] };
      }),
    });
  }
  const parted = { ...graph, layers };
  checkPartition(parted, { cuts: forced });
  return { graph: parted, forced, moments };
}
