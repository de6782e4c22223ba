/** Times each layer of a stage that runs op by op. @module */
import type { LayerCost } from "../../stages/balance.ts";
import type { LayerProbe, StageModel } from "../../stages/stage_model.ts";
import type { Around, PendingGradient } from "../../stages/tape.ts";
import { engine, type TapeNode } from "../../stages/tfjs.ts";
import type { tf } from "../../deps.ts";

/** Sums of time by layer. Ops run while they are called, so that wall time is theirs. */
export class EagerProfile {
  readonly #layerOf = new WeakMap<TapeNode, string>();
  #sums = new Map<string, { F: number; B: number; W: number }>();

  constructor(readonly model: StageModel) {
    let depth = 0;
    let begin = 0;
    let start = 0;
    const tape = () => engine().state.activeTape ?? [];
    const probe: LayerProbe = {
      enter: () => {
        if (depth++ > 0) return;
        begin = tape().length;
        start = performance.now();
      },
      leave: (layer) => {
        if (--depth > 0) return;
        this.#add(layer, "F", performance.now() - start);
        for (const node of tape().slice(begin)) this.#layerOf.set(node, layer);
      },
    };
    model.probe = probe;
  }

  /** Runs the backward of one op. */
  readonly around: Around = (node, body) => this.#timed(node, "B", body);

  /** Runs one pending gradient. */
  readonly weight = (pending: PendingGradient): tf.Tensor =>
    this.#timed(pending.node, "W", () => pending.run());

  /** Forgets what was measured so far. */
  start(): void {
    this.#sums = new Map();
  }

  /** Ends measuring. */
  stop(): void {
    this.model.probe = undefined;
  }

  /** Milliseconds per round. */
  perRound(rounds: number): Record<string, LayerCost> {
    return Object.fromEntries(
      [...this.#sums].map(([layer, { F, B, W }]) => [layer, { F: F / rounds, B: B / rounds, W: W / rounds }]),
    );
  }

  #timed<T>(node: TapeNode, part: keyof LayerCost, body: () => T): T {
    const start = performance.now();
    const result = body();
    const layer = this.#layerOf.get(node);
    if (layer !== undefined) this.#add(layer, part, performance.now() - start);
    return result;
  }

  #add(layer: string, part: keyof LayerCost, ms: number): void {
    const sum = this.#sums.get(layer) ?? { F: 0, B: 0, W: 0 };
    sum[part] += ms;
    this.#sums.set(layer, sum);
  }
}
