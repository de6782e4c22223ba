/** Graphs made without a model, to try every partition of. @module */
import type { TensorSpec } from "../../ring/dtype.ts";
import { type GraphLayer, type ModelGraph, refKey } from "../../stages/graph.ts";

/** A layer by the positions of those that feed it; -1 is the model's input. */
export interface LayerSketch {
  readonly from: readonly number[];
  /** Second use of the layer, by what feeds it: it is shared. */
  readonly again?: readonly number[];
  readonly masks?: boolean;
  /** Whether its weight is trained. Default: true. */
  readonly trains?: boolean;
}

/** The graph of these layers, named `l0`, `l1`, ... */
export function sketch(layers: readonly LayerSketch[], name = "sketch"): ModelGraph {
  const ref = (i: number) => ({ layer: i < 0 ? "x" : `l${i}`, node: 0, tensor: 0 });
  const output = { shape: [null, 1], dtype: "float32" as const };
  const weight = { name: "w", shape: [1], dtype: "float32" as const };
  return {
    name,
    layers: layers.map(({ from, again, masks = false, trains = true }, i): GraphLayer => ({
      index: i,
      name: `l${i}`,
      className: "Dense",
      config: {},
      nodes: [from, ...(again ? [again] : [])].map((inputs) => ({
        inputs: inputs.map(ref),
        outputs: [output],
        callArgs: {},
      })),
      weights: [{ ...weight, trainable: trains }],
      masks,
    })),
    inputs: [{ ref: ref(-1), name: "x", shape: [null, 1], dtype: "float32" }],
    outputs: [{ ref: ref(layers.length - 1), name: "y", shape: [null, 1] }],
  };
}

/** One layer after the other. */
export function chain(length: number): LayerSketch[] {
  return Array.from({ length }, (_, i) => ({ from: [i - 1] }));
}

/** Graphs of different kinds, none longer than ten layers. */
export const SKETCHES: Readonly<Record<string, readonly LayerSketch[]>> = {
  chain: chain(9),
  residual: [{ from: [-1] }, { from: [0] }, { from: [1] }, { from: [0, 2] }, { from: [3] }, { from: [4] }, {
    from: [3, 5],
  }, { from: [6] }],
  "long skip": [
    { from: [-1] },
    { from: [0] },
    { from: [1] },
    { from: [2] },
    { from: [3] },
    { from: [0, 4] },
    {
      from: [5],
    },
  ],
  unet: [{ from: [-1] }, { from: [0] }, { from: [1] }, { from: [2] }, { from: [1, 3] }, { from: [0, 4] }, {
    from: [5],
  }],
  masked: [{ from: [-1], masks: true }, { from: [0], masks: true }, { from: [1] }, { from: [2] }, {
    from: [3],
  }],
  shared: [{ from: [-1] }, { from: [0], again: [3] }, { from: [1] }, { from: [2] }, { from: [1, 3] }, {
    from: [4],
  }],
  branches: [{ from: [-1] }, { from: [-1] }, { from: [0] }, { from: [1] }, { from: [2, 3] }, {
    from: [4, 1],
  }],
  "the input again": [{ from: [-1] }, { from: [0] }, { from: [1] }, { from: [-1, 2] }, { from: [3] }],
};

/** Every way to choose cuts for `stages` stages of `length` layers. */
export function* everyCut(length: number, stages: number, from = 1): Generator<number[]> {
  if (stages === 1) {
    yield [];
    return;
  }
  for (let cut = from; cut < length; cut++) {
    for (const rest of everyCut(length, stages - 1, cut + 1)) yield [cut, ...rest];
  }
}

/** Specs of a graph's tensors: float32 of the shapes noted, with so many samples. */
export function specsOf(graph: ModelGraph, samples: number): Map<string, TensorSpec> {
  const spec = (shape: readonly (number | null)[]): TensorSpec => ({
    shape: shape.map((dim) => dim ?? samples),
    dtype: "float32",
  });
  return new Map([
    ...graph.inputs.map(({ ref, shape }) => [refKey(ref), spec(shape)] as const),
    ...graph.layers.flatMap(({ name, nodes }) =>
      nodes.flatMap(({ outputs }, node) =>
        outputs.map(({ shape }, tensor) => [refKey({ layer: name, node, tensor }), spec(shape)] as const)
      )
    ),
  ]);
}
