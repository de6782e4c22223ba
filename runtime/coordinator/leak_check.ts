/** Finds what is left over after a step: tensors, handles, functions. @module */
import type { StageCounters } from "../protocol.ts";

/** Compares each step's counts with those after the last step of its kind. */
export class LeakCheck {
  #kinds = new Set<string>();
  #last: readonly Readonly<Record<string, number>>[] | undefined;

  /**
   * Looks at the counters after a step.
   *
   * @param kind steps of one kind need the same functions and slots; the first of a kind may make them
   * @param devices names, one per stage
   * @throws {Error} naming what a stage holds more of than before
   */
  after(kind: string, stages: readonly Pick<StageCounters, "counts">[], devices: readonly string[]): void {
    const now = stages.map(({ counts }) => counts);
    const last = this.#last;
    const known = this.#kinds.has(kind);
    this.#kinds.add(kind);
    this.#last = now;
    if (!known || !last) return;
    now.forEach((counts, stage) => {
      for (const [what, count] of Object.entries(counts)) {
        const before = last[stage]?.[what] ?? 0;
        if (count <= before) continue;
        throw new Error(
          `Stage ${stage} (${
            devices[stage]
          }) leaks: ${count} ${what} after a step, ${before} after the step ` +
            `before it; dispose what the stage's custom layers keep`,
        );
      }
    });
  }

  /** Forgets what was counted: the stages were built anew. */
  reset(): void {
    this.#kinds = new Set();
    this.#last = undefined;
  }
}
