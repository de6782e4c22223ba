/**
 * Tells what each layer costs inside captured functions: nodes that read the clock stand between the nodes of
 * one layer and those of the next, so that what is measured is what will run.
 * @module
 */
import type { LayerCost } from "../../../stages/balance.ts";
import type { LayerProbe } from "../../../stages/stage_model.ts";
import { engine, type TapeNode } from "../../../stages/tfjs.ts";
import { ATTR_INT, typeAttr } from "../binding/attributes.ts";
import { TF_DOUBLE } from "../binding/dtypes.ts";
import type { GraphRecorder } from "../binding/graph_recorder.ts";
import type { GraphTensor } from "../binding/graph_tensor.ts";

/** What belongs to no layer. */
const OTHER = "";

interface Marks {
  readonly stamps: GraphTensor[];
  /** Which layer the time since the stamp before belongs to. */
  readonly labels: string[];
}

/** Stamps in the graphs of one program. */
export class LayerClock {
  readonly #marks = new Map<GraphRecorder, Marks>();
  readonly #layerOf = new Map<TapeNode, string>();

  /** Starts the clock of a graph. */
  watch(graph: GraphRecorder): void {
    graph.useFences();
    this.#marks.set(graph, { stamps: [], labels: [] });
    this.mark(graph, OTHER);
  }

  /** Ends a span of nodes. */
  mark(graph: GraphRecorder, layer: string): void {
    const { stamps, labels } = this.#marks.get(graph)!;
    stamps.push(graph.fence());
    labels.push(layer);
  }

  /** Marks the model's outermost layers in F, and remembers which ops they recorded. */
  probe(graph: GraphRecorder): LayerProbe {
    let depth = 0;
    let begin = 0;
    const tape = () => engine().state.activeTape ?? [];
    return {
      enter: () => {
        if (depth++ > 0) return;
        begin = tape().length;
        this.mark(graph, OTHER);
      },
      leave: (layer) => {
        if (--depth > 0) return;
        for (const node of tape().slice(begin)) this.#layerOf.set(node, layer);
        this.mark(graph, layer);
      },
    };
  }

  /** The layer that recorded an op. */
  layerOf(node: TapeNode): string {
    return this.#layerOf.get(node) ?? OTHER;
  }

  /** All stamps of a graph as one vector, and what the time between them belongs to. */
  vector(graph: GraphRecorder): { tensor: GraphTensor; labels: readonly string[] } {
    const { stamps, labels } = this.#marks.get(graph)!;
    const attributes = [
      typeAttr("T", TF_DOUBLE),
      { name: "N", type: ATTR_INT, value: stamps.length },
      { name: "axis", type: ATTR_INT, value: 0 },
    ];
    return { tensor: graph.op("Pack", attributes, stamps, 1)[0]!, labels };
  }
}

/** Adds the times between stamps, in milliseconds, to the layers that they belong to. */
export function addTimes(
  costs: Map<string, Record<keyof LayerCost, number[]>>,
  part: keyof LayerCost,
  labels: readonly string[],
  seconds: Float64Array,
): void {
  const round = new Map<string, number>();
  for (let i = 1; i < labels.length; i++) {
    const layer = labels[i]!;
    round.set(layer, (round.get(layer) ?? 0) + (seconds[i]! - seconds[i - 1]!) * 1000);
  }
  for (const [layer, ms] of round) {
    if (layer === OTHER) continue;
    const cost = costs.get(layer) ?? { F: [], B: [], W: [] };
    cost[part].push(ms);
    costs.set(layer, cost);
  }
}

/** The median of each layer's rounds. */
export function medianCosts(
  costs: Map<string, Record<keyof LayerCost, number[]>>,
): Record<string, LayerCost> {
  const median = (rounds: number[]) => rounds.sort((a, b) => a - b)[rounds.length >> 1] ?? 0;
  return Object.fromEntries(
    [...costs].map(([layer, { F, B, W }]) => [layer, { F: median(F), B: median(B), W: median(W) }]),
  );
}
