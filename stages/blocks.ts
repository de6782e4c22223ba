/** The blocks of a model, told from its layers' names, and the partitions that cut between them. @module */
import type { ModelGraph } from "./graph.ts";
import { checkPartition, type Partition } from "./partition.ts";

/** Layers that follow each other and share the first part of their names. */
export interface Block {
  /** What their names begin with: "encoder2" of "encoder2_block1_conv1". */
  readonly name: string;
  /** Position of its first layer. */
  readonly begin: number;
  /** Name of its first layer. */
  readonly layer: string;
}

/** A model's blocks in order. They cover it: a layer whose neighbours have other names is a block of its own. */
export function blocksOf(graph: ModelGraph): Block[] {
  const blocks: Block[] = [];
  graph.layers.forEach((layer, begin) => {
    const name = layer.name.split("_", 1)[0]!;
    if (blocks.at(-1)?.name !== name) blocks.push({ name, begin, layer: layer.name });
  });
  return blocks;
}

/** All partitions into `stages` stages that cut between blocks and can be run, in the model's order. */
export function blockPartitions(graph: ModelGraph, stages: number): Partition[] {
  const begins = blocksOf(graph).map(({ begin }) => begin).slice(1);
  return choices(begins, stages - 1).map((cuts) => ({ cuts })).filter((partition) => {
    try {
      checkPartition(graph, partition);
      return true;
    } catch {
      return false;
    }
  });
}

/** Every way to take `count` of these, in order. */
function choices(from: readonly number[], count: number): number[][] {
  if (count === 0) return [[]];
  return from.flatMap((first, i) => choices(from.slice(i + 1), count - 1).map((rest) => [first, ...rest]));
}
