/** What a worker is told to build its stage: plain data that passes through `postMessage`. @module */
import type { DType, TensorSpec } from "../ring/dtype.ts";
import { type GraphLayer, type ModelGraph, refKey, type TensorRef } from "./graph.ts";
import { crossings, type Partition, stageLayers } from "./partition.ts";

/** A tensor that a stage is given. */
export interface StageInput {
  readonly ref: TensorRef;
  readonly dtype: DType;
  /** Shape with `null` for what is open, batch axis first. */
  readonly shape: readonly (number | null)[];
  /** Which of the model's inputs it is; undefined for a tensor that the previous stage sends. */
  readonly modelInput?: number;
  /** Whether the previous stage waits for its gradient. */
  readonly needsGradient: boolean;
}

/** A tensor that a stage sends to the next. */
export interface StageOutput {
  readonly ref: TensorRef;
  readonly dtype: DType;
  /** Whether its gradient comes back. */
  readonly needsGradient: boolean;
}

/** One weight of a stage, and where it stands in the memory that all weights travel through. */
export interface StageWeight extends TensorSpec {
  readonly layer: string;
  /** Index among the layer's weights. */
  readonly index: number;
  readonly trainable: boolean;
  /** Byte offset, a multiple of 64. */
  readonly offset: number;
}

/** A stage. */
export interface StageConfig {
  readonly index: number;
  readonly count: number;
  readonly layers: readonly GraphLayer[];
  readonly inputs: readonly StageInput[];
  readonly outputs: readonly StageOutput[];
  /** The model's outputs that this stage makes: their index in the model. */
  readonly modelOutputs: readonly { readonly ref: TensorRef; readonly output: number }[];
  readonly weights: readonly StageWeight[];
}

/** Where each weight of a model stands, by `weightKey`. */
export type WeightLayout = ReadonlyMap<string, StageWeight>;

/** A key for maps. */
export function weightKey(layer: string, index: number): string {
  return `${layer}#${index}`;
}

/** Describes every stage of a partitioned model. */
export function stageConfigs(graph: ModelGraph, partition: Partition, layout: WeightLayout): StageConfig[] {
  const count = partition.cuts.length + 1;
  const owner = new Map<string, GraphLayer>(graph.layers.map((layer) => [layer.name, layer]));
  const sent = Array.from({ length: count }, (_, s) => s < count - 1 ? crossings(graph, partition, s) : []);
  return sent.map((out, index): StageConfig => {
    const layers = stageLayers(graph, partition, index);
    const used = new Set(layers.flatMap((layer) => layer.nodes.flatMap((node) => node.inputs.map(refKey))));
    const fed = graph.inputs.flatMap((input, modelInput): StageInput[] =>
      used.has(refKey(input.ref))
        ? [{ ref: input.ref, dtype: input.dtype, shape: input.shape, modelInput, needsGradient: false }]
        : []
    );
    const received = (sent[index - 1] ?? []).map(({ ref, needsGradient }): StageInput => {
      const { shape, dtype } = owner.get(ref.layer)!.nodes[ref.node]!.outputs[ref.tensor]!;
      return { ref, dtype, shape, needsGradient };
    });
    const here = new Set(layers.map(({ name }) => name));
    return {
      index,
      count,
      layers,
      inputs: [...fed, ...received],
      outputs: out.map(({ ref, needsGradient }) => ({
        ref,
        dtype: owner.get(ref.layer)!.nodes[ref.node]!.outputs[ref.tensor]!.dtype,
        needsGradient,
      })),
      modelOutputs: graph.outputs.flatMap(({ ref }, output) => here.has(ref.layer) ? [{ ref, output }] : []),
      weights: layers.flatMap(({ name, weights }) => weights.map((_, i) => layout.get(weightKey(name, i))!)),
    };
  });
}
