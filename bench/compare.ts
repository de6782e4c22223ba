/**
 * Runs strategies in turn, a step each, round after round, so that a drifting machine does not decide; each is
 * compared with `single` of the same round.
 * @module
 */
import type { ProgressReport } from "../runtime/coordinator/coordinator.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import type { Progress } from "../cli/progress.ts";
import { Contestant, type Task } from "./contestant.ts";
import type { TorchPeer } from "./peers/torch.ts";
import type { BenchResults, Example, Timeline } from "./results.ts";

/** One comparison's outcome. */
export interface Outcome {
  readonly results: BenchResults;
  readonly timelines: readonly Timeline[];
  readonly examples?: readonly Example[];
  /** Whole rounds, of how many. */
  readonly rounds: number;
  readonly steps: number;
  /** What ended the rounds before their time; those before it count. */
  readonly failure?: unknown;
}

/** A strategy that is to take part. */
export interface Entry {
  readonly name: string;
  readonly options: DistributeOptions;
}

/** What is to be compared. */
export interface Plan {
  readonly task: Task;
  /** In the order in which they come up: those that are cut at "auto" share what the first of them found. */
  readonly entries: readonly Entry[];
  readonly steps: number;
  /** Starts the peers, once the strategies are up. */
  readonly peers?: () => Promise<TorchPeer[]>;
  /** Expected seconds of bringing strategies up, and of the rounds. */
  readonly weights: { readonly up: number; readonly rounds: number };
}

/** What took part, still at work. */
export interface Field {
  readonly contestants: readonly Contestant[];
  readonly peers: readonly TorchPeer[];
  /** Whole rounds. */
  readonly rounds: number;
  readonly failure?: unknown;
}

const PHASES = {
  start: "starting workers",
  partition: "measuring layers and cutting the model",
  build: "building stages",
  capture: "capturing stages",
  measure: "measuring stages",
} as const;

/** Says in words what a trainer does when it comes up. */
export function describePhase(phase: Parameters<ProgressReport>[0]): string {
  return PHASES[phase];
}

/** A notice that says each line once: strategies find the same to say. */
export function oncePerLine(progress: Progress): (line: string) => void {
  const told = new Set<string>();
  return (line) => {
    if (!told.has(line)) progress.log(line);
    told.add(line);
  };
}

/**
 * Runs a comparison.
 *
 * @param stopped asked before every round; true ends them, and what was measured is kept
 * @param use takes what was measured, while everything is still up
 * @throws {Error} what went wrong before a first round was whole
 */
export async function compare<T>(
  plan: Plan,
  progress: Progress,
  stopped: () => boolean,
  use: (field: Field) => T | Promise<T>,
): Promise<T> {
  const { task, entries, steps } = plan;
  const contestants: Contestant[] = [];
  let peers: TorchPeer[] = [];
  try {
    progress.phase("bringing up strategies", plan.weights.up);
    let found: readonly string[] | undefined;
    let comingUp = true;
    for (const [i, { name, options }] of entries.entries()) {
      if (stopped()) break;
      const at = (detail: string) => {
        if (comingUp) progress.tick([i, entries.length], `${name}: ${detail}`);
      };
      at("building the model");
      const shared = options.partition === "auto" && found ? { partition: found } : {};
      const contestant = await Contestant.enter(
        name,
        task,
        { ...options, ...shared },
        (phase) => at(describePhase(phase)),
      );
      contestants.push(contestant);
      if (options.partition === "auto") found ??= contestant.trainer.partition;
      at("first step");
      await contestant.warmUp();
    }
    comingUp = false;
    if (plan.peers && !stopped()) {
      progress.phase("starting torch", 30);
      peers = await plan.peers();
    }
    progress.phase("training in turn", plan.weights.rounds);
    let failure: unknown;
    try {
      await runRounds(steps, contestants, peers, progress, stopped);
    } catch (error) {
      failure = error;
    }
    const all = [...contestants, ...peers];
    const rounds = Math.min(...all.map((contestant) => contestant.rounds.length));
    if (rounds === 0 || contestants.length === 0) {
      throw failure ?? new Error("Interrupted before a round was whole: nothing was measured");
    }
    for (const contestant of all) contestant.keep(rounds);
    return await use({ contestants, peers, rounds, ...(failure === undefined ? {} : { failure }) });
  } finally {
    for (const contestant of contestants) await contestant.leave();
    for (const peer of peers) peer.stop();
  }
}

async function runRounds(
  steps: number,
  contestants: readonly Contestant[],
  peers: readonly TorchPeer[],
  progress: Progress,
  stopped: () => boolean,
): Promise<void> {
  const all = [...contestants, ...peers];
  for (let round = 0; round < steps; round++) {
    for (let turn = 0; turn < all.length; turn++) {
      // A round counts when all have had their turn: it is not begun after a stop, but finished.
      if (turn === 0 && stopped() && round > 0) return;
      const contestant = all[(round + turn) % all.length]!;
      progress.tick(
        [round * all.length + turn, steps * all.length],
        `round ${round + 1}: ${contestant.name}`,
      );
      await contestant.step();
    }
  }
}
