/** Where a model is cut into stages. @module */
import type { GraphLayer, ModelGraph } from "./graph.ts";

/**
 * Cuts of a model into stages: stage `s` holds layers `cuts[s - 1]` (0 for the first) up to, not including,
 * `cuts[s]`.
 */
export interface Partition {
  /** Positions in the graph's order of layers, ascending. One fewer than stages. */
  readonly cuts: readonly number[];
}

/**
 * How a user names cuts: the layer that begins each stage after the first, by name, by position, or by the block
 * that it begins: "encoder3" for the first of the layers "encoder3_block1_conv1", "encoder3_block1_bn1", ...
 */
export type PartitionSpec = readonly (string | number)[];

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
    const position = typeof entry === "number" ? entry : positionOf(graph, entry);
    if (!Number.isInteger(position) || position < 0 || position >= graph.layers.length) {
      throw new RangeError(
        typeof entry === "number"
          ? `Cannot cut the model at layer ${entry}: expected an index from 1 to ${graph.layers.length - 1}`
          : `Cannot cut the model at layer "${entry}": it has no such layer or block; its layers are ${
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

/** Where the layer of that name stands, or the first layer of the block; -1 if there is none. */
function positionOf({ layers }: ModelGraph, name: string): number {
  const layer = layers.findIndex((layer) => layer.name === name);
  return layer >= 0 ? layer : layers.findIndex((layer) => layer.name.startsWith(`${name}_`));
}

/**
 * Refuses a partition that cannot be run.
 *
 * @throws {RangeError} naming the layers, if a layer is used in two stages, or a mask would have to cross
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
    if (edge.from.masks) {
      throw new RangeError(
        `Cannot cut the model between layers "${edge.from.name}" and "${edge.to.name}": a mask goes from one to ` +
          `the other; keep them in one stage`,
      );
    }
  }
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

function names(layers: readonly GraphLayer[]): string {
  const shown = layers.slice(0, 12).map(({ name }) => name).join(", ");
  return layers.length > 12 ? `${shown}, ... (${layers.length} in all)` : shown;
}
