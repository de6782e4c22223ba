/**
 * Zero bubble: B comes first, for the previous stage waits for it; W, for which nobody waits, fills the gaps.
 *
 * A list scheduler over measured times: each stage takes, when it is free, a B that is ready, else an F, else a
 * W, and keeps at most so many micro-batches between F and W.
 *
 * ```
 *   stage 0   F0 F1    B0 W0 B1 F2 W1 F3 B2 W2 B3 W3 U
 *   stage 1      F0 B0 F1 B1 W0 W1 F2 B2 F3 B3 W2 W3 U
 * ```
 * Source: Qi et al., "Zero Bubble Pipeline Parallelism", 2023: B and W apart, and scheduled from their times.
 * @module
 */
import { type Action, action, type Schedule } from "./action.ts";
import { simulate, type StageTimes } from "./simulate.ts";

/** What the scheduler may do. */
export interface ZeroBubbleOptions {
  /** Times of each stage. */
  readonly times: readonly StageTimes[];
  /** Most micro-batches between F and W on a stage. Default: the fewest that cost less than 0.5 %. */
  readonly maxInFlight?: number;
  /** Per stage, how many micro-batches one W takes. Default: 1. */
  readonly weightBatch?: readonly number[];
}

/** Time given away for a tighter bound on micro-batches in flight. */
const TOLERANCE = 1.005;

/** The schedule for `microBatches` micro-batches on as many stages as there are times. */
export function zeroBubble(microBatches: number, options: ZeroBubbleOptions): Schedule {
  const { times, maxInFlight } = options;
  const make = (bound: number) => list(microBatches, times, bound, options.weightBatch ?? times.map(() => 1));
  if (maxInFlight !== undefined) return make(maxInFlight);
  const cost = (schedule: Schedule) => simulate(schedule, { times }).makespan;
  const free = make(microBatches);
  const least = cost(free) * TOLERANCE;
  for (let bound = Math.min(times.length, microBatches); bound < microBatches; bound++) {
    const schedule = make(bound);
    if (cost(schedule) <= least) return schedule;
  }
  return free;
}

interface StageState {
  readonly actions: Action[];
  readonly forwards: number[]; // when each F ends
  readonly backwards: number[]; // when each B ends
  weights: number;
  clock: number;
}

/** What a stage would do next, and when. */
interface Choice {
  readonly stage: number;
  readonly kind: "F" | "B" | "W";
  readonly start: number;
  readonly count: number;
}

function list(m: number, times: readonly StageTimes[], bound: number, batches: readonly number[]): Schedule {
  const last = times.length - 1;
  const stages: StageState[] = times.map(() => ({
    actions: [],
    forwards: [],
    backwards: [],
    weights: 0,
    clock: 0,
  }));
  const cap = Math.max(bound, ...batches); // a batched W needs that many in flight
  for (;;) {
    // The choice that starts first is final: nothing that is decided later can end before it.
    let next: Choice | undefined;
    for (let s = 0; s <= last; s++) {
      const choice = choose(s);
      if (choice && (!next || choice.start < next.start)) next = choice;
    }
    if (!next) break;
    const { stage: s, kind, start, count } = next;
    const stage = stages[s]!;
    stage.clock = start + times[s]![kind] * count;
    if (kind === "F") stage.actions.push(action("F", stage.forwards.push(stage.clock) - 1));
    else if (kind === "B") stage.actions.push(action("B", stage.backwards.push(stage.clock) - 1));
    else {
      stage.actions.push(action("W", stage.weights, count));
      stage.weights += count;
    }
  }
  for (const stage of stages) stage.actions.push(action("U"));
  return stages.map(({ actions }) => actions);

  /** B before F before W, among what is ready when the stage is free; else what is ready first. */
  function choose(s: number): Choice | undefined {
    const { forwards, backwards, weights, clock } = stages[s]!;
    const f = forwards.length;
    const b = backwards.length;
    const dy = s === last ? clock : stages[s + 1]!.backwards[b];
    const x = s === 0 ? clock : stages[s - 1]!.forwards[f];
    const readyB = b < f ? dy : undefined;
    const readyF = f < m && f - weights < cap ? x : undefined;
    const count = Math.min(batches[s]!, m - weights);
    if (readyB !== undefined && readyB <= clock) return { stage: s, kind: "B", start: clock, count: 1 };
    if (readyF !== undefined && readyF <= clock) return { stage: s, kind: "F", start: clock, count: 1 };
    if (weights < m && b - weights >= count) return { stage: s, kind: "W", start: clock, count };
    if (readyB !== undefined && (readyF === undefined || readyB <= readyF)) {
      return { stage: s, kind: "B", start: readyB, count: 1 };
    }
    return readyF === undefined ? undefined : { stage: s, kind: "F", start: readyF, count: 1 };
  }
}
