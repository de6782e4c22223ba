/**
 * Plays a schedule through, with the rings' capacity in both directions: how long it takes, what each ring
 * holds at most, or where it would wait for ever.
 *
 * A stage is blocked by a message that has not come, and, when it has computed, by a ring without room: a slot
 * stays taken until its receiver has done the last of F, B and W that reads it.
 * @module
 */
import { chainLinks, type Link } from "../../stages/routes.ts";
import { type Action, formatAction, type Schedule } from "./action.ts";

/** Seconds (or any unit) that one micro-batch takes on a stage. */
export interface StageTimes {
  readonly F: number;
  readonly B: number;
  readonly W: number;
  /** Adding up with other replicas. Default: 0. */
  readonly R?: number;
  /** The update. Default: 0. */
  readonly U?: number;
}

/** Slots of the rings between stages, by link: entry `s` lies between stages `s` and `s + 1` without skips. */
export interface Capacities {
  readonly activations: readonly number[];
  readonly gradients: readonly number[];
}

/** What to play it with. */
export interface SimulationOptions {
  readonly times?: readonly StageTimes[];
  /** Default: no limit. */
  readonly capacities?: Capacities;
  /** Which stages send to which. Default: each to the next. */
  readonly links?: readonly Link[];
}

/** One action as it was played. */
export interface PlayedAction {
  readonly action: Action;
  readonly start: number;
  readonly end: number;
}

/** The outcome. */
export interface Simulation {
  /** From the first start to the last end. */
  readonly makespan: number;
  readonly played: readonly (readonly PlayedAction[])[];
  /** Slots with which no sender waits for room, per ring: an upper bound on those that are taken at once. */
  readonly peak: Capacities;
}

/** Thrown for a schedule that would wait for ever. */
export class DeadlockError extends Error {
  override readonly name = "DeadlockError";
}

interface Ring {
  readonly name: string;
  readonly capacity: number;
  /** When each message was sent, and when its slot was free again. */
  readonly sent: number[];
  readonly released: number[];
  peak: number;
}

/**
 * Plays `schedule`. Its actions must be legal; `validate` checks that.
 *
 * @throws {DeadlockError} naming the actions that wait for each other
 */
export function simulate(schedule: Schedule, options: SimulationOptions = {}): Simulation {
  const { times, capacities } = options;
  const p = schedule.length;
  const links = options.links ?? chainLinks(p);
  const ring = (kind: "activations" | "gradients", { from, to }: Link, i: number): Ring => ({
    name: kind === "activations"
      ? `activations from stage ${from} to ${to}`
      : `gradients from stage ${to} to ${from}`,
    capacity: capacities?.[kind][i] ?? Infinity,
    sent: [],
    released: [],
    peak: 0,
  });
  const activations = links.map((link, i) => ring("activations", link, i));
  const gradients = links.map((link, i) => link.gradients ? ring("gradients", link, i) : undefined);
  /** The rings of the links that end, or begin, at a stage. */
  const at = (end: "from" | "to", rings: readonly (Ring | undefined)[]) =>
    schedule.map((_, s) => links.flatMap((link, i) => link[end] === s ? rings[i] ?? [] : []));
  const activationsTo = at("to", activations);
  const activationsFrom = at("from", activations);
  const gradientsFrom = at("to", gradients); // a gradient goes the other way
  const gradientsTo = at("from", gradients);
  const played: PlayedAction[][] = schedule.map(() => []);
  const clock = schedule.map(() => 0);
  const done = schedule.map(() => 0);
  const split = schedule.map((actions) => actions.some(({ kind }) => kind === "W"));
  let moved = true;
  while (moved) {
    moved = false;
    for (let s = 0; s < p; s++) {
      while (done[s]! < schedule[s]!.length) {
        const action = schedule[s]![done[s]!]!;
        const step = play(s, action);
        if (typeof step === "string") break;
        played[s]!.push({ action, ...step });
        clock[s] = step.end;
        done[s]!++;
        moved = true;
      }
    }
  }
  if (schedule.some((actions, s) => done[s]! < actions.length)) throw new DeadlockError(describe());
  return {
    makespan: Math.max(...clock),
    played,
    peak: {
      activations: activations.map(({ peak }) => peak),
      gradients: gradients.map((ring) => ring?.peak ?? 0),
    },
  };

  /** Plays one action, or says what it waits for. */
  function play(s: number, action: Action): { start: number; end: number } | string {
    const { kind, microBatch: i, count } = action;
    const t = times?.[s] ?? { F: 1, B: 1, W: 1 };
    const [sources, targets] = kind === "F"
      ? [activationsTo[s]!, activationsFrom[s]!]
      : kind === "R" || kind === "U" || kind === "W"
      ? [[], []]
      : [gradientsTo[s]!, gradientsFrom[s]!];
    let start = clock[s]!;
    for (const source of sources) {
      if (source.sent[i] === undefined) return `for message ${i} of ${source.name}`;
      start = Math.max(start, source.sent[i]!);
    }
    const cost = kind === "BW" ? t.B + t.W : kind === "R" || kind === "U" ? t[kind] ?? 0 : t[kind] * count;
    let end = start + cost;
    for (const target of targets) {
      const slot = i - target.capacity;
      if (slot < 0) continue;
      if (target.released[slot] === undefined) {
        return `for room to send ${i} of ${target.name} (${target.capacity} slots)`;
      }
      end = Math.max(end, target.released[slot]!);
    }
    for (const target of targets) {
      target.sent[i] = end;
      const taken = i + 1 - target.released.filter((time) => time <= end).length;
      target.peak = Math.max(target.peak, taken);
    }
    // The last action on a micro-batch gives its slots back: W where it is apart from B.
    if (kind === "W" || kind === "BW" || kind === "B" && !split[s]) {
      for (let j = i; j < i + count; j++) {
        for (const ring of [...activationsTo[s]!, ...gradientsTo[s]!]) ring.released[j] = end;
      }
    }
    return { start, end };
  }

  function describe(): string {
    const lines = schedule.flatMap((actions, s) => {
      const action = actions[done[s]!];
      if (!action) return [];
      const before = done[s]! > 0 ? `after ${formatAction(actions[done[s]! - 1]!)}` : "at its start";
      return [`stage ${s} waits, ${before}, in ${formatAction(action)} ${play(s, action)}`];
    });
    return `Schedule would wait for ever: ${lines.join("; ")}`;
  }
}
