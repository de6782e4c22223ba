/** Chooses how many micro-batches one W takes on each stage. @module */
import { simulate, type StageTimes } from "./simulate.ts";
import { zeroBubble } from "./zero_bubble.ts";

/** Measured times of a stage, and of its W over several micro-batches, per micro-batch, by their number. */
export type BatchedTimes = StageTimes & { readonly batched: Readonly<Record<number, number>> };

/** What a larger batch must gain on the whole step: it keeps more in flight and sums in another order. */
const GAIN = 0.97;

/**
 * Tries the numbers that were measured, stage by stage, on whole simulated steps: a W that is faster by itself
 * may come too late.
 *
 * @param maxInFlight most micro-batches that a stage may keep; a batch may not be larger
 */
export function chooseWeightBatch(
  microBatches: number,
  times: readonly BatchedTimes[],
  maxInFlight: number | undefined,
): number[] {
  const chosen = times.map(() => 1);
  const makespan = (batches: readonly number[]) => {
    const now = timesFor(times, batches);
    return simulate(zeroBubble(microBatches, { times: now, maxInFlight, weightBatch: batches }), {
      times: now,
    }).makespan;
  };
  let best = makespan(chosen);
  for (let stage = times.length - 1; stage >= 0; stage--) {
    for (const k of Object.keys(times[stage]!.batched).map(Number)) {
      if (k > (maxInFlight ?? Infinity)) continue; // it would keep that many in flight
      const tried = chosen.with(stage, k);
      const cost = makespan(tried);
      if (cost < best * GAIN) {
        best = cost;
        chosen[stage] = k;
      }
    }
  }
  return chosen;
}

/** The times of stages whose W takes so many micro-batches. */
export function timesFor(times: readonly BatchedTimes[], weightBatch: readonly number[]): StageTimes[] {
  return times.map((t, s) => ({ ...t, W: t.batched[weightBatch[s]!] ?? t.W }));
}
