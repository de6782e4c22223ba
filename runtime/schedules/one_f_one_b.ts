/**
 * 1F1B: after a warm-up, one forward and one backward in turn, so that a stage keeps at most as many
 * micro-batches in flight as there are stages from it to the last.
 *
 * ```
 *   stage 0   F0 F1     BW0 F2 BW1 F3 BW2    BW3 U
 *   stage 1      F0 BW0 F1 BW1 F2 BW2 F3 BW3 U
 * ```
 * Source: Narayanan et al., "PipeDream", 2019, with the flush of its 2BW sequel.
 * @module
 */
import { type Action, action, type Schedule } from "./action.ts";

/** The schedule for `stages` stages and `microBatches` micro-batches. */
export function oneForwardOneBackward(stages: number, microBatches: number): Schedule {
  return Array.from({ length: stages }, (_, stage) => {
    const warmUp = Math.min(microBatches, stages - 1 - stage);
    const actions: Action[] = [];
    for (let i = 0; i < warmUp; i++) actions.push(action("F", i));
    for (let i = warmUp; i < microBatches; i++) actions.push(action("F", i), action("BW", i - warmUp));
    for (let i = microBatches - warmUp; i < microBatches; i++) actions.push(action("BW", i));
    actions.push(action("U"));
    return actions;
  });
}
