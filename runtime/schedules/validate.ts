/** Refuses a schedule that is not legal, or that would wait for ever with the rings it has. @module */
import { type Action, formatAction, type Schedule } from "./action.ts";
import type { Link } from "../../stages/routes.ts";
import { type Capacities, simulate } from "./simulate.ts";

/** Thrown for a schedule that is not legal. */
export class ScheduleError extends Error {
  override readonly name = "ScheduleError";
}

/**
 * Checks that every stage runs each micro-batch's F, then its B, then its W (or both as BW) exactly once, in
 * the order of the micro-batches, and its update last, with R right before it or not at all.
 *
 * @throws {ScheduleError} naming stage and action
 * @throws {DeadlockError} naming the actions that wait for each other, if `capacities` are given
 */
export function validate(
  schedule: Schedule,
  microBatches: number,
  capacities?: Capacities,
  links?: readonly Link[],
): void {
  schedule.forEach((actions, stage) => checkStage(actions, stage, microBatches));
  simulate(schedule, { ...(capacities ? { capacities } : {}), ...(links ? { links } : {}) });
}

function checkStage(actions: readonly Action[], stage: number, microBatches: number): void {
  const fail = (action: Action, why: string): never => {
    throw new ScheduleError(`Cannot run ${formatAction(action)} on stage ${stage}: ${why}`);
  };
  const done = { F: 0, B: 0, W: 0 };
  actions.forEach((action, at) => {
    const { kind, microBatch, count } = action;
    if (kind === "U") {
      if (at !== actions.length - 1) fail(action, "the update comes last");
      return;
    }
    if (kind === "R") {
      if (at !== actions.length - 2) fail(action, "gradients are added up right before the update");
      return;
    }
    if (kind !== "W" && count !== 1) fail(action, "only W takes several micro-batches");
    if (count < 1 || microBatch + count > microBatches) {
      fail(action, `the step has micro-batches 0 to ${microBatches - 1}`);
    }
    const parts = kind === "BW" ? ["B", "W"] as const : [kind];
    for (const part of parts) {
      if (microBatch !== done[part]) fail(action, `expected ${part}${done[part]} next`);
      if (part === "B" && microBatch >= done.F) fail(action, `its F comes after it`);
      if (part === "W" && microBatch + count > done.B) fail(action, `its B comes after it`);
      done[part] += count;
    }
  });
  for (const part of ["F", "B", "W"] as const) {
    if (done[part] !== microBatches) {
      throw new ScheduleError(
        `Cannot run stage ${stage}: it has ${done[part]} of ${microBatches} ${part} actions`,
      );
    }
  }
  if (actions.at(-1)?.kind !== "U") throw new ScheduleError(`Cannot run stage ${stage}: it has no update`);
}
