/**
 * Cuts a model so that the slowest stage is as fast as it can be: an exact dynamic program over per-layer cost.
 *
 * Source: torchgpipe's `balance` asks the same question of a sequence; here a cut may be forbidden.
 * @module
 */
import { allowedCuts, type Partition } from "./partition.ts";
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
  const stageCost = (begin: number, end: number) => sums[end]! - sums[begin]!;
  const fastest = leastCuts(graph, stages, (slowest, begin, end) => Math.max(slowest, stageCost(begin, end)));
  if (fastest === undefined) {
    throw new RangeError(
      `Cannot cut model "${graph.name}" into ${stages} stages: its ${n} layers allow fewer; use fewer devices`,
    );
  }
  const lightest = leastCuts(graph, stages, (bytes, begin, end) => {
    if (stageCost(begin, end) > fastest.value) return undefined;
    return bytes + (begin === 0 ? 0 : crossingBytes[begin]!);
  });
  return { cuts: lightest!.cuts };
}

/** What stages come to with one more, of layers `begin` to `end - 1`; undefined if it must not be. */
type Extend = (before: number, begin: number, end: number) => number | undefined;

/** The cuts with the least value, by a dynamic program over where the last stage begins. */
function leastCuts(
  graph: ModelGraph,
  stages: number,
  extend: Extend,
): { value: number; cuts: number[] } | undefined {
  const n = graph.layers.length;
  const allowed = allowedCuts(graph);
  type Entry = { readonly value: number; readonly begin: number } | undefined;
  const rows: Entry[][] = [[{ value: 0, begin: 0 }]]; // rows[k][j]: layers 0..j-1 in k stages
  for (let k = 1; k <= stages; k++) {
    const row: Entry[] = [];
    for (let j = k; j <= n; j++) {
      for (let i = k - 1; i < j; i++) {
        const before = rows[k - 1]![i];
        if (before === undefined || i > 0 && !allowed[i]) continue;
        const value = extend(before.value, i, j);
        if (value !== undefined && value < (row[j]?.value ?? Infinity)) row[j] = { value, begin: i };
      }
    }
    rows.push(row);
  }
  const last = rows[stages]![n];
  if (last === undefined) return undefined;
  const cuts: number[] = [];
  for (let k = stages, j = n; k > 1; k--) {
    j = rows[k]![j]!.begin;
    cuts.unshift(j);
  }
  return { value: last.value, cuts };
}
