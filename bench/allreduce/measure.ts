/** Measures sums among workers: every contestant once a round, so that the machine's drift meets all alike. @module */
import type { Progress } from "../../cli/progress.ts";
import { allowedCores } from "../../runtime/machine/machine.ts";
import { median } from "../median.ts";
import { GlooPeer } from "../peers/gloo.ts";
import { bytesName } from "./words.ts";
import { type CaseGroup, freeMemory, planCases } from "./cases.ts";
import { Members } from "./members.ts";
import type { AllreduceCase, AllreduceResults, AllreduceTiming, ContestantName } from "./results.ts";

/** What is measured. */
export interface AllreduceOptions {
  /** Numbers of workers. */
  readonly workers: readonly number[];
  /** Bytes that each worker contributes. */
  readonly bytes: readonly number[];
  readonly rounds: number;
  /** Python with torch, for gloo. */
  readonly torch: string | undefined;
}

/** Seconds that a round takes of each contestant, at least: a short sum is repeated. */
const ROUND_SECONDS = 0.02;
const MOST_REPETITIONS = 2000;

/** What a case costs beside its bytes, in bytes: for the progress. */
const CASE = 3e7;

/** Runs one contestant; answers with the seconds of one repetition. */
type Run = (bytes: number, repetitions: number) => Promise<number>;

/** What was measured, and what ended it before its time. */
export interface AllreduceOutcome {
  readonly results: AllreduceResults;
  readonly failure?: unknown;
}

/**
 * Measures every case that fits in memory.
 *
 * @param weight of all of it in the progress
 * @param stopped asked after every round: what is measured so far is kept
 * @throws {Error} what went wrong before a first round was whole
 */
export async function measureAllreduce(
  options: AllreduceOptions,
  progress: Progress,
  weight: number,
  stopped: () => boolean,
): Promise<AllreduceOutcome> {
  const { workers, bytes, rounds, torch } = options;
  const cores = allowedCores();
  const { groups, skipped } = planCases(workers, bytes, freeMemory(), torch !== undefined);
  for (const one of skipped) {
    progress.log(`Left out: ${bytesName(one.bytes)} between ${one.workers} workers ${one.reason}`);
  }
  if (groups.length === 0) {
    throw new Error("Cannot measure: nothing of what is asked for fits in memory; give smaller --bytes");
  }
  const cases: AllreduceCase[] = [];
  const total = groups.reduce((sum, group) => sum + costOf(group), 0);
  let failure: unknown;
  try {
    for (const group of groups) {
      if (stopped()) break;
      progress.phase(`${group.workers} workers`, weight * costOf(group) / total);
      await measureGroup(group, { rounds, torch, cores }, progress, stopped, (one) => cases.push(one));
    }
  } catch (error) {
    failure = error;
  }
  if (cases.length === 0) {
    throw failure ?? new Error("Interrupted before a round was whole: nothing was measured");
  }
  return { results: { settings: { rounds, cores: cores.length }, cases, skipped }, failure };
}

async function measureGroup(
  { workers, sizes }: CaseGroup,
  { rounds, torch, cores }: { rounds: number; torch: string | undefined; cores: readonly number[] },
  progress: Progress,
  stopped: () => boolean,
  keep: (one: AllreduceCase) => void,
): Promise<void> {
  using members = await Members.start(workers, sizes.at(-1)! / 4, cores);
  using gloo = torch === undefined ? undefined : await GlooPeer.start(torch, workers);
  const ours = (what: "ring" | "parameterServer" | "memcpy"): Run => (bytes, repetitions) =>
    members.run({ what, length: bytes / 4, repetitions });
  const runs: [ContestantName, Run][] = [
    ["ring", ours("ring")],
    ["parameterServer", ours("parameterServer")],
    ["memcpy", ours("memcpy")],
  ];
  if (gloo) runs.push(["gloo", (bytes, repetitions) => gloo.run(bytes, repetitions)]);

  for (const [i, bytes] of sizes.entries()) {
    const before = costOf({ workers, sizes: sizes.slice(0, i) });
    const at = (share: number) =>
      progress.tick(
        (before + costOf({ workers, sizes: [bytes] }) * share) / costOf({ workers, sizes }),
        bytesName(bytes),
      );
    at(0);
    const repetitions = new Map<ContestantName, number>();
    for (const [name, run] of runs) {
      if (stopped()) return;
      repetitions.set(name, await calibrate(run, bytes));
    }
    const seconds = new Map(runs.map(([name]) => [name, [] as number[]]));
    for (let round = 0; round < rounds && !stopped(); round++) {
      at((round + 1) / (rounds + 1));
      // Each begins a round in its turn: what runs first finds other caches than what runs last.
      for (let turn = 0; turn < runs.length; turn++) {
        const [name, run] = runs[(round + turn) % runs.length]!;
        seconds.get(name)!.push(await run(bytes, repetitions.get(name)!));
      }
    }
    if (seconds.get("ring")!.length > 0) keep(caseOf(workers, bytes, seconds));
  }
}

/** In proportion to the time that it takes. */
function costOf({ workers, sizes }: CaseGroup): number {
  return workers * sizes.reduce((sum, size) => sum + size + CASE, 0);
}

/** Repetitions that make a round. The first run, which finds cold memory, does not count. */
async function calibrate(run: Run, bytes: number): Promise<number> {
  const cold = await run(bytes, 1);
  if (cold > 10 * ROUND_SECONDS) return 1;
  const warm = await run(bytes, 5);
  return Math.min(MOST_REPETITIONS, Math.max(1, Math.ceil(ROUND_SECONDS / warm)));
}

/** Medians, and each contestant's seconds over the ring's in the same round. */
export function caseOf(
  workers: number,
  bytes: number,
  seconds: ReadonlyMap<ContestantName, readonly number[]>,
): AllreduceCase {
  const ring = seconds.get("ring")!;
  const timings: Partial<Record<ContestantName, AllreduceTiming>> = {};
  const ringSpeedup: Partial<Record<ContestantName, number>> = {};
  for (const [name, rounds] of seconds) {
    const middle = median(rounds);
    timings[name] = { seconds: middle, rounds, gigabytesPerSecond: bytes / middle / 1e9 };
    if (name !== "ring") ringSpeedup[name] = median(rounds.map((s, i) => s / ring[i]!));
  }
  return { workers, bytes, timings, ringSpeedup };
}
