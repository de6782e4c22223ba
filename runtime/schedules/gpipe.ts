/**
 * GPipe: all forwards, then all backwards.
 *
 * ```
 *   stage 0   F0 F1 F2 F3             BW0 BW1 BW2 BW3 U
 *   stage 1      F0 F1 F2 F3 BW0 BW1 BW2 BW3 U
 * ```
 * Source: Huang et al., "GPipe", 2019. With one micro-batch it is naive model parallelism.
 * @module
 */
import { action, type Schedule } from "./action.ts";

/** The schedule for `stages` stages and `microBatches` micro-batches. */
export function gpipe(stages: number, microBatches: number): Schedule {
  const all = [...Array(microBatches).keys()];
  return Array.from({ length: stages }, () => [
    ...all.map((i) => action("F", i)),
    ...all.map((i) => action("BW", i)),
    action("U"),
  ]);
}
