/** Clipping by the norm of all stages' gradients, seen from one stage. @module */
import type { Group } from "../../ring/group.ts";
import { clipScale, joinedNorm } from "../../stages/clipping.ts";

/** The only sum that the stages' group is for: each member's norm in a place of its own. */
const SLOT = 0;

/** Learns the norm of the whole model's gradients from all stages. */
export class NormClipping {
  /** @param group undefined for a model of one stage */
  constructor(readonly limit: number, readonly group: Group | undefined) {}

  /** Milliseconds that this stage has waited for the others' norms so far. */
  get waitMs(): number {
    return this.group?.waitMs ?? 0;
  }

  /**
   * Waits for the other stages' norms, each stage once a batch.
   *
   * @param norm of this stage's gradients; 0 where none is trained
   * @returns what every stage multiplies its gradients with: the same bits in all
   * @throws {AbortedError} when another stage fails
   */
  scale(norm: number): number {
    return clipScale(this.group ? this.#whole(this.group, norm) : norm, this.limit);
  }

  /** Forgets a sum under way. */
  reset(): void {
    this.group?.reset();
  }

  /** Norms and not squares are handed over: a square may overflow. */
  #whole(group: Group, norm: number): number {
    const { rank, size } = group;
    const read = (from: number, target: Float32Array) => {
      for (let i = 0; i < target.length; i++) target[i] = from + i === rank ? norm : 0;
    };
    const norms = group.reduce(SLOT, size, { read }).finish();
    const whole = joinedNorm(norms);
    group.release(SLOT);
    return whole;
  }
}
