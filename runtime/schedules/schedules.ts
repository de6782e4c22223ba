/** Schedules by name, and the rings that each needs. @module */
import type { Link } from "../../stages/routes.ts";
import { action, type Schedule } from "./action.ts";
import { gpipe } from "./gpipe.ts";
import { oneForwardOneBackward } from "./one_f_one_b.ts";
import { type Capacities, simulate, type StageTimes } from "./simulate.ts";
import { zeroBubble } from "./zero_bubble.ts";

/** Names of the schedules. */
export const SCHEDULES = ["gpipe", "1f1b", "zero-bubble"] as const satisfies readonly ScheduleName[];

/** Name of a schedule. */
export type ScheduleName = "gpipe" | "1f1b" | "zero-bubble";

/** What schedules are made from. */
export interface ScheduleOptions {
  readonly stages: number;
  readonly microBatches: number;
  /** Measured times, for "zero-bubble". Default: F, B and W alike. */
  readonly times?: readonly StageTimes[];
  readonly maxInFlight?: number;
  readonly weightBatch?: readonly number[];
}

/** Makes the schedule of that name. */
export function makeSchedule(name: ScheduleName, options: ScheduleOptions): Schedule {
  const { stages, microBatches } = options;
  switch (name) {
    case "gpipe":
      return gpipe(stages, microBatches);
    case "1f1b":
      return oneForwardOneBackward(stages, microBatches);
    case "zero-bubble": {
      const times = options.times ?? Array.from({ length: stages }, () => ({ F: 1, B: 1, W: 1 }));
      return zeroBubble(microBatches, { ...options, times });
    }
  }
}

/**
 * The part of a schedule that a batch with fewer micro-batches needs, in the same order: it fits the rings of
 * the whole, where a schedule of its own might not.
 */
export function firstMicroBatches(schedule: Schedule, microBatches: number): Schedule {
  return schedule.map((actions) =>
    actions.flatMap((a) => {
      const count = Math.min(a.count, microBatches - a.microBatch);
      return a.kind === "R" || a.kind === "U" ? [a] : count > 0 ? [{ ...a, count }] : [];
    })
  );
}

/** The schedule of replicas: each stage adds up its gradients with its like before the update. */
export function withReduction(schedule: Schedule): Schedule {
  return schedule.map((actions) => actions.flatMap((a) => a.kind === "U" ? [action("R"), a] : [a]));
}

/** Whether W runs apart from B. */
export function splitsBackward(schedule: Schedule): boolean {
  return schedule.some((actions) => actions.some(({ kind }) => kind === "W"));
}

/**
 * Slots with which no sender of the schedule has to wait for room: what it keeps in flight, and one more for a
 * machine that does not keep to the times.
 */
export function capacitiesFor(
  schedule: Schedule,
  microBatches: number,
  times?: readonly StageTimes[],
  links?: readonly Link[],
): Capacities {
  const { peak } = simulate(schedule, { ...(times ? { times } : {}), ...(links ? { links } : {}) });
  const roomy = (slots: readonly number[]) => slots.map((n) => Math.min(microBatches, n + 1));
  return { activations: roomy(peak.activations), gradients: roomy(peak.gradients) };
}
