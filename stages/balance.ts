/**
 * Cuts a model so that the slowest stage is as fast as it can be: an exact dynamic program over per-layer cost.
 *
 * Source: torchgpipe's `balance` asks the same question of a sequence; here a cut may be forbidden, and a
 * tensor may not skip a stage.
 * @module
 */
import { allowedCuts, earliestNextCut, type Partition } from "./partition.ts";
import type { ModelGraph } from "./graph.ts";

/** Seconds that one micro-batch takes in one layer. */
export interface LayerCost {
  readonly F: number;
  readonly B: number;
  readonly W: number;
}

/** The sum of a layer's F, B and W. */
export function totalCost(cost: LayerCost): number {
  return cost.F + cost.B + cost.W;
}

/**
 * The partition into `stages` stages whose largest stage cost is least; of several such, the one that sends
 * least across its cuts.
 *
 * @param costs one per layer of the graph, any unit
 * @param crossingBytes bytes that cross a cut before each position
 * @throws {RangeError} if the model cannot be cut into that many stages
 */
export function balance(
  graph: ModelGraph,
  costs: readonly LayerCost[],
  stages: number,
  crossingBytes: readonly number[] = costs.map(() => 0),
): Partition {
  const n = graph.layers.length;
  const sums = [0];
  for (const cost of costs) sums.push(sums.at(-1)! + totalCost(cost));
  const allowed = allowedCuts(graph);
  const next = earliestNextCut(graph);
  // best[k][j]: layers 0..j-1 in k stages, as [slowest stage, bytes, where the last stage begins].
  type Entry = readonly [slowest: number, bytes: number, begin: number];
  let best: (Entry | undefined)[] = sums.map((sum, j) => j > 0 ? [sum, 0, 0] as const : undefined);
  const history = [best];
  for (let k = 2; k <= stages; k++) {
    const row: (Entry | undefined)[] = new Array(n + 1).fill(undefined);
    for (let j = k; j <= n; j++) {
      for (let i = k - 1; i < j; i++) {
        const before = best[i];
        if (before === undefined || !allowed[i] || (j < n && next[i]! > j)) continue;
        const slowest = Math.max(before[0], sums[j]! - sums[i]!);
        const bytes = before[1] + crossingBytes[i]!;
        const now = row[j];
        if (now === undefined || slowest < now[0] || (slowest === now[0] && bytes < now[1])) {
          row[j] = [slowest, bytes, i];
        }
      }
    }
    best = row;
    history.push(row);
  }
  if (best[n] === undefined) {
    throw new RangeError(
      `Cannot cut model "${graph.name}" into ${stages} stages: its ${n} layers allow fewer; use fewer devices`,
    );
  }
  const cuts: number[] = [];
  for (let k = stages, j = n; k > 1; k--) {
    j = history[k - 1]![j]![2];
    cuts.unshift(j);
  }
  return { cuts };
}
