/**
 * Routes: which tensors go from which stage to which. A tensor that several stages need goes to each of them
 * straight from the stage that makes it, and each sends its gradient straight back.
 * @module
 */
import type { DType } from "../ring/dtype.ts";
import { type ModelGraph, refKey, type TensorRef } from "./graph.ts";
import { type Partition, stageOf } from "./partition.ts";

/** A tensor's way from the stage that makes it to one that needs it. */
export interface Route {
  readonly ref: TensorRef;
  readonly dtype: DType;
  /** With `null` for what is open, batch axis first. */
  readonly shape: readonly (number | null)[];
  readonly from: number;
  /** A later stage; not the next one for a skip. */
  readonly to: number;
  /** Whether a gradient comes back. */
  readonly needsGradient: boolean;
}

/** Two stages between which tensors go. */
export interface Link {
  readonly from: number;
  readonly to: number;
  /** Whether gradients come back. */
  readonly gradients: boolean;
}

/** Every route of a partition, by source, then destination, then the order of the layers that make them. */
export function routesOf(graph: ModelGraph, partition: Partition): Route[] {
  const position = new Map(graph.layers.map(({ name }, i) => [name, i]));
  const trained = trainableUpstream(graph);
  const found = new Map<string, Route>();
  graph.layers.forEach((layer, i) => {
    const to = stageOf(partition, i);
    for (const ref of layer.nodes.flatMap((node) => node.inputs)) {
      const made = position.get(ref.layer);
      if (made === undefined) continue;
      const from = stageOf(partition, made);
      if (from === to) continue;
      const { dtype, shape } = graph.layers[made]!.nodes[ref.node]!.outputs[ref.tensor]!;
      const needsGradient = dtype === "float32" && trained.has(ref.layer);
      found.set(`${to} ${refKey(ref)}`, { ref, dtype, shape, from, to, needsGradient });
    }
  });
  const place = ({ ref }: Route) => position.get(ref.layer)!;
  return [...found.values()].sort((a, b) => a.from - b.from || a.to - b.to || place(a) - place(b));
}

/** The pairs of stages that routes join, in the routes' order. */
export function linksOf(routes: Iterable<Pick<Route, "from" | "to" | "needsGradient">>): Link[] {
  const links = new Map<string, Link>();
  for (const { from, to, needsGradient } of routes) {
    const key = `${from} ${to}`;
    links.set(key, { from, to, gradients: needsGradient || (links.get(key)?.gradients ?? false) });
  }
  return [...links.values()];
}

/** Each stage with the next: the links of a model without skips. */
export function chainLinks(stages: number): Link[] {
  return Array.from(
    { length: Math.max(0, stages - 1) },
    (_, from) => ({ from, to: from + 1, gradients: true }),
  );
}

/** Names of layers whose output depends on a trainable weight. */
function trainableUpstream(graph: ModelGraph): Set<string> {
  const trained = new Set<string>();
  let before = -1;
  while (trained.size !== before) { // a shared layer can depend on one that comes after it in the order
    before = trained.size;
    for (const layer of graph.layers) {
      const own = layer.weights.some((w) => w.trainable);
      if (own || layer.nodes.some((n) => n.inputs.some((r) => trained.has(r.layer)))) trained.add(layer.name);
    }
  }
  return trained;
}
