/** Estimates what a layer costs, from its arithmetic and its traffic. @module */
import { byteLengthOf, sizeOf, type TensorSpec } from "../ring/dtype.ts";
import type { LayerCost } from "./balance.ts";
import { type GraphLayer, type ModelGraph, refKey } from "./graph.ts";

/** Multiply-adds a second that a device is taken to reach; only the ratio to the next matters. */
const FLOPS = 25e9;
/** Bytes a second that a device is taken to move. */
const BANDWIDTH = 8e9;

/** Seconds that each layer of the graph takes for one micro-batch. @param specs tensors by `refKey` */
export function estimateCosts(graph: ModelGraph, specs: ReadonlyMap<string, TensorSpec>): LayerCost[] {
  return graph.layers.map((layer) => {
    let products = 0;
    let bytes = 0;
    layer.nodes.forEach(({ inputs, outputs }, node) => {
      const taken = inputs.map((ref) => specs.get(refKey(ref))!);
      const made = outputs.map((_, tensor) => specs.get(refKey({ layer: layer.name, node, tensor }))!);
      for (const spec of [...taken, ...made]) bytes += byteLengthOf(spec);
      products += multiplyAdds(layer, taken[0]!, made[0]!);
    });
    const weights = layer.weights.reduce((sum, w) => sum + byteLengthOf(w), 0);
    const arithmetic = products / FLOPS;
    const traffic = bytes / BANDWIDTH;
    return {
      F: arithmetic + traffic,
      B: arithmetic + traffic,
      // W reads and writes the accumulator of each weight beside the gradient.
      W: weights === 0 ? 0 : arithmetic + 3 * weights / BANDWIDTH,
    };
  });
}

/** Bytes that would cross a cut before each layer. */
export function crossingBytes(graph: ModelGraph, specs: ReadonlyMap<string, TensorSpec>): number[] {
  const position = new Map(graph.layers.map(({ name }, i) => [name, i]));
  const lastUse = new Map<string, { from: number; to: number }>();
  graph.layers.forEach((layer, to) => {
    for (const ref of layer.nodes.flatMap((node) => node.inputs)) {
      const from = position.get(ref.layer);
      if (from === undefined) continue;
      const key = refKey(ref);
      lastUse.set(key, { from, to: Math.max(to, lastUse.get(key)?.to ?? 0) });
    }
  });
  const bytes = graph.layers.map(() => 0);
  for (const [key, { from, to }] of lastUse) {
    for (let cut = from + 1; cut <= to; cut++) bytes[cut]! += byteLengthOf(specs.get(key)!);
  }
  return bytes;
}

/** Multiply-adds of one forward: each position of a layer's input or output meets some of its weights. */
function multiplyAdds({ className, weights }: GraphLayer, input: TensorSpec, output: TensorSpec): number {
  const [kernel] = weights;
  if (!kernel) return 0;
  const { shape } = kernel;
  switch (className) {
    case "Conv1D":
    case "Conv2D":
    case "Conv3D": // [..., in, out]
      return sizeOf(output.shape) / shape.at(-1)! * sizeOf(shape);
    case "Conv2DTranspose":
    case "Conv3DTranspose": // [..., out, in]
      return sizeOf(input.shape) / shape.at(-1)! * sizeOf(shape);
    case "DepthwiseConv2D":
      return sizeOf(output.shape) * shape[0]! * shape[1]!;
    case "SeparableConv1D":
    case "SeparableConv2D":
      return positions(output) * weightsOf(weights);
    case "BatchNormalization":
    case "LayerNormalization":
    case "Embedding":
    case "PReLU":
      return sizeOf(output.shape);
    default: // Dense, recurrent and unknown layers: every weight meets every sample (or time step)
      return positions(input) * weightsOf(weights);
  }
}

function positions({ shape }: TensorSpec): number {
  return sizeOf(shape) / (shape.at(-1) || 1);
}

function weightsOf(weights: GraphLayer["weights"]): number {
  return weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
}
