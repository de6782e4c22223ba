/** What the tests of schedules share: numbers of stages and micro-batches, times, and counts. @module */
import type { Action, Schedule } from "../../runtime/schedules/action.ts";
import type { StageTimes } from "../../runtime/schedules/simulate.ts";

/** Stages and micro-batches, fewer micro-batches than stages among them. */
export const PAIRS: readonly (readonly [stages: number, microBatches: number])[] = [1, 2, 3, 4, 5, 6].flatMap(
  (p) => [1, 2, 3, 4, 5, 7, 8, 13, 16, 32].map((m) => [p, m] as const),
);

/** Numbers in [0, 1) from a seed: a linear congruential generator. */
export function random(seed: number): () => number {
  let x = seed >>> 0;
  return () => (x = (Math.imul(x, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** Times of stages that differ from each other, some of them much. */
export function unequalTimes(stages: number, seed: number): StageTimes[] {
  const draw = random(seed);
  for (let i = 0; i < 8; i++) draw();
  return Array.from(
    { length: stages },
    () => ({ F: 0.2 + 2 * draw(), B: 0.2 + 2 * draw(), W: 0.2 + 2 * draw() }),
  );
}

/** Stages that take the same. */
export function equalTimes(stages: number, times: StageTimes = { F: 1, B: 1, W: 1 }): StageTimes[] {
  return new Array(stages).fill(times);
}

/** Most micro-batches that a stage has between their F and their last backward. */
export function inFlight(actions: readonly Action[]): number {
  let [now, most] = [0, 0];
  for (const { kind, count } of actions) {
    if (kind === "F") most = Math.max(most, ++now);
    if (kind === "W" || kind === "BW") now -= count;
  }
  return most;
}

/** The same for every stage. */
export function inFlightByStage(schedule: Schedule): number[] {
  return schedule.map(inFlight);
}
