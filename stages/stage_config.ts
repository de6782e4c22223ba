/** What a worker is told to build its stage: plain data that passes through `postMessage`. @module */
import type { DType, TensorSpec } from "../ring/dtype.ts";
import { type GraphLayer, type ModelGraph, refKey, type TensorRef } from "./graph.ts";
import { type Partition, stageLayers } from "./partition.ts";
import { routesOf } from "./routes.ts";

/** A tensor that a stage is given. */
export interface StageInput {
  readonly ref: TensorRef;
  readonly dtype: DType;
  /** Shape with `null` for what is open, batch axis first. */
  readonly shape: readonly (number | null)[];
  /** Which of the model's inputs it is; undefined for a tensor that another stage sends. */
  readonly modelInput?: number;
  /** The stage that sends it; undefined for one of the model's inputs. */
  readonly from?: number;
  /** Whether that stage waits for its gradient. */
  readonly needsGradient: boolean;
}

/** A tensor that a stage sends to another; one that several stages need is an output for each of them. */
export interface StageOutput {
  readonly ref: TensorRef;
  readonly dtype: DType;
  /** The stage that needs it. */
  readonly to: number;
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
  /** The parts that run one after another; absent for a stage that is one. */
  readonly segments?: readonly StageConfig[];
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
  const routes = routesOf(graph, partition);
  return Array.from({ length: count }, (_, index): StageConfig => {
    const layers = stageLayers(graph, partition, index);
    const used = new Set(layers.flatMap((layer) => layer.nodes.flatMap((node) => node.inputs.map(refKey))));
    const fed = graph.inputs.flatMap((input, modelInput): StageInput[] =>
      used.has(refKey(input.ref))
        ? [{ ref: input.ref, dtype: input.dtype, shape: input.shape, modelInput, needsGradient: false }]
        : []
    );
    const received = routes.filter(({ to }) => to === index).map((
      { ref, dtype, shape, from, needsGradient },
    ): StageInput => ({ ref, dtype, shape, from, needsGradient }));
    const here = new Set(layers.map(({ name }) => name));
    return {
      index,
      count,
      layers,
      inputs: [...fed, ...received],
      outputs: routes.filter(({ from }) => from === index).map(({ ref, dtype, to, needsGradient }) => ({
        ref,
        dtype,
        to,
        needsGradient,
      })),
      modelOutputs: graph.outputs.flatMap(({ ref }, output) => here.has(ref.layer) ? [{ ref, output }] : []),
      weights: layers.flatMap(({ name, weights }) => weights.map((_, i) => layout.get(weightKey(name, i))!)),
    };
  });
}
