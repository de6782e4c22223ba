/** Where a model is cut, and what crosses each cut. @module */
import { type GraphLayer, type ModelGraph, refKey, type TensorRef } from "./graph.ts";

/**
 * Cuts of a model into stages: stage `s` holds layers `cuts[s - 1]` (0 for the first) up to, not including,
 * `cuts[s]`.
 */
export interface Partition {
  /** Positions in the graph's order of layers, ascending. One fewer than stages. */
  readonly cuts: readonly number[];
}

/** How a user names cuts: the layer that begins each stage after the first, by name or position. */
export type PartitionSpec = readonly (string | number)[];

/** A tensor that leaves one stage for the next. */
export interface Crossing {
  readonly ref: TensorRef;
  /** Whether a gradient comes back for it. */
  readonly needsGradient: boolean;
}

/** Which stage holds the layer at `position`. */
export function stageOf(partition: Partition, position: number): number {
  let stage = 0;
  while (stage < partition.cuts.length && position >= partition.cuts[stage]!) stage++;
  return stage;
}

/** The layers of one stage. */
export function stageLayers(graph: ModelGraph, partition: Partition, stage: number): readonly GraphLayer[] {
  return graph.layers.slice(partition.cuts[stage - 1] ?? 0, partition.cuts[stage] ?? graph.layers.length);
}

/**
 * Resolves cuts given by hand.
 *
 * @throws {RangeError} if a layer is unknown, cuts do not ascend, or their number does not fit `stages`
 */
export function resolvePartition(graph: ModelGraph, spec: PartitionSpec, stages: number): Partition {
  if (spec.length !== stages - 1) {
    throw new RangeError(
      `Cannot cut the model at [${spec.join(", ")}]: ${stages} stages need ${
        stages - 1
      } cuts, got ${spec.length}; ` +
        `name the layer that begins each stage after the first`,
    );
  }
  const cuts = spec.map((entry) => {
    const position = typeof entry === "number" ? entry : graph.layers.findIndex(({ name }) => name === entry);
    if (!Number.isInteger(position) || position < 0 || position >= graph.layers.length) {
      throw new RangeError(
        typeof entry === "number"
          ? `Cannot cut the model at layer ${entry}: expected an index from 1 to ${graph.layers.length - 1}`
          : `Cannot cut the model at layer "${entry}": it has no such layer; its layers are ${
            names(graph.layers)
          }`,
      );
    }
    return position;
  });
  cuts.forEach((cut, i) => {
    if (cut > (cuts[i - 1] ?? 0)) return;
    throw new RangeError(
      `Cannot cut the model at [${spec.join(", ")}]: stage ${i} would have no layers; ` +
        `name layers in the model's order, none before the second: ${names(graph.layers)}`,
    );
  });
  const partition = { cuts };
  checkPartition(graph, partition);
  return partition;
}

/**
 * Refuses a partition that cannot be run.
 *
 * @throws {RangeError} naming the layers, if a layer is used in two stages, a tensor is needed further on than
 * the next stage, or a mask would have to cross
 */
export function checkPartition(graph: ModelGraph, partition: Partition): void {
  const stageByName = new Map(graph.layers.map(({ name }, i) => [name, stageOf(partition, i)]));
  for (const edge of edges(graph)) {
    const from = stageByName.get(edge.from.name)!;
    const to = stageByName.get(edge.to.name)!;
    if (to === from) continue;
    if (to < from) {
      throw new RangeError(
        `Cannot cut the model: layer "${edge.to.name}" is shared, used in stage ${to} and again after layer ` +
          `"${edge.from.name}" of stage ${from}; keep all of its uses in one stage`,
      );
    }
    if (to > from + 1) {
      throw new RangeError(
        `Cannot cut the model: the output of layer "${edge.from.name}" in stage ${from} is needed by layer ` +
          `"${edge.to.name}" in stage ${to}, further on than the next stage; move a cut so that at most one lies ` +
          `between them`,
      );
    }
    if (edge.from.masks) {
      throw new RangeError(
        `Cannot cut the model between layers "${edge.from.name}" and "${edge.to.name}": a mask goes from one to ` +
          `the other; keep them in one stage`,
      );
    }
  }
}

/** The tensors that leave stage `stage` for the next, in the order of the layers that make them. */
export function crossings(graph: ModelGraph, partition: Partition, stage: number): Crossing[] {
  const position = new Map(graph.layers.map(({ name }, i) => [name, i]));
  const trained = trainableUpstream(graph);
  const found = new Map<string, Crossing>();
  graph.layers.forEach((layer, i) => {
    if (stageOf(partition, i) !== stage + 1) return;
    for (const ref of layer.nodes.flatMap((node) => node.inputs)) {
      const from = position.get(ref.layer);
      if (from === undefined || stageOf(partition, from) !== stage) continue;
      const { dtype } = graph.layers[from]!.nodes[ref.node]!.outputs[ref.tensor]!;
      found.set(refKey(ref), { ref, needsGradient: dtype === "float32" && trained.has(ref.layer) });
    }
  });
  return [...found.values()].sort((a, b) => position.get(a.ref.layer)! - position.get(b.ref.layer)!);
}

/** For each position, the first position at which a stage that begins there may be cut again. */
export function earliestNextCut(graph: ModelGraph): number[] {
  const position = new Map(graph.layers.map(({ name }, i) => [name, i]));
  const next = graph.layers.map((_, i) => i + 1);
  for (const { from, to } of edges(graph)) {
    const made = position.get(from.name)!;
    const used = position.get(to.name)!;
    // Made before a cut at `c` and used at `used`: the stage that begins at `c` must reach past `used`.
    for (let c = made + 1; c <= used; c++) next[c] = Math.max(next[c]!, used + 1);
  }
  return next;
}

/** Whether the model may be cut before each position, looking at that cut alone. */
export function allowedCuts(graph: ModelGraph): boolean[] {
  return graph.layers.map((_, i) => {
    if (i === 0) return false;
    try {
      checkPartition(graph, { cuts: [i] });
      return true;
    } catch {
      return false;
    }
  });
}

function* edges(graph: ModelGraph): Generator<{ from: GraphLayer; to: GraphLayer }> {
  const byName = new Map(graph.layers.map((layer) => [layer.name, layer]));
  for (const to of graph.layers) {
    for (const ref of to.nodes.flatMap((node) => node.inputs)) {
      const from = byName.get(ref.layer);
      if (from !== undefined) yield { from, to };
    }
  }
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

function names(layers: readonly GraphLayer[]): string {
  const shown = layers.slice(0, 12).map(({ name }) => name).join(", ");
  return layers.length > 12 ? `${shown}, ... (${layers.length} in all)` : shown;
}
