/**
 * Looks for the best partition and split size of a pipeline: predicted from one profile, or each cut measured. What
 * was measured before a Ctrl-C or a failure is kept.
 * @module
 */
import type { Progress } from "../cli/progress.ts";
import { distribute } from "../runtime/distribute.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import type { PartitionSpec } from "../stages/partition.ts";
import type { Trainer } from "../runtime/trainer/trainer.ts";
import type { ScheduleName } from "../runtime/schedules/schedules.ts";
import { blocksOf } from "../stages/blocks.ts";
import { modelGraph } from "../stages/graph.ts";
import { describePhase } from "./compare.ts";
import type { Task } from "./contestant.ts";
import { median } from "./median.ts";
import type { CutChooser, CutResult } from "./results.ts";

/** Rounds of each cut that are timed, after one that warms up. */
const ROUNDS = 3;

/** Where to look. */
export interface CutSearch {
  readonly task: Task;
  readonly common: DistributeOptions;
  readonly schedule: ScheduleName;
  /** Whether every cut is measured. */
  readonly enumerate: boolean;
  /** The one partition to consider, or all between blocks. */
  readonly partition: "auto" | PartitionSpec;
  /** The one split size to consider. */
  readonly splitSize?: number;
}

/** What was found. */
export interface FoundCuts {
  readonly table: readonly CutResult[];
  readonly best: CutResult;
  readonly chosenBy: CutChooser;
  /** Whether the enumeration came to its end. */
  readonly whole: boolean;
  /** What computes. */
  readonly engine: string;
  /** What broke it off. */
  readonly failure?: unknown;
}

/** Predicts every cut, and measures each where that is wanted. */
export async function searchCuts(
  search: CutSearch,
  progress: Progress,
  stopped: () => boolean,
): Promise<FoundCuts> {
  const { task, common, schedule, enumerate, partition, splitSize } = search;
  progress.phase("profiling layers", 20);
  const model = task.makeModel();
  const names = new Map(blocksOf(modelGraph(model)).map(({ name, layer }) => [layer, name]));
  let profiling = true;
  await using scout = await distribute(model, { ...common, strategy: "pipeline", schedule }, (phase) => {
    if (profiling) progress.tick(0.1, describePhase(phase));
  });
  scout.compile(task.compile());
  const { entries } = await scout.forecast(task.data, {
    batchSize: task.batch,
    ...(partition === "auto" ? {} : { partitions: [partition] }),
    ...(splitSize === undefined ? {} : { splitSizes: [splitSize] }),
  });
  profiling = false;
  const predicted = entries.map(({ partition, splitSize, seconds }): CutResult => ({
    partition: partition.map((layer) => names.get(layer) ?? layer),
    splitSize,
    predictedSeconds: seconds,
  }));
  const chosenBy = chooser(search, "predicted");
  const choice = { table: predicted, best: least(predicted, ({ predictedSeconds }) => predictedSeconds!) };
  const found = { ...choice, whole: true, engine: scout.engine };
  if (!enumerate) return { ...found, chosenBy };
  progress.phase("measuring every cut", ENUMERATION_SECONDS);
  const { rounds, failure } = await measureCuts(search, predicted, scout, progress, stopped);
  const table = withRounds(predicted, rounds);
  const measured = table.filter(({ secondsPerStep }) => secondsPerStep !== undefined);
  return {
    ...found,
    table,
    best: measured.length > 0 ? least(measured, ({ secondsPerStep }) => secondsPerStep!) : found.best,
    chosenBy: measured.length > 0 ? chooser(search, "measured") : chosenBy,
    whole: rounds.size === predicted.length && failure === undefined,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** What chose: the command line all, or a part of it, and `by` the rest. */
function chooser({ partition, splitSize }: CutSearch, by: "measured" | "predicted"): CutChooser {
  if (partition !== "auto") return splitSize === undefined ? `given partition, ${by} split size` : "given";
  return splitSize === undefined ? by : `given split size, ${by} partition`;
}

/** Expected seconds of an enumeration, for the progress display. */
const ENUMERATION_SECONDS = 600;

/** Seconds of each round of a cut, and of the reference in the same rounds; none of a cut that cannot be run. */
export interface CutRounds {
  readonly cut: readonly number[];
  readonly single: readonly number[];
}

/** Measures cuts in turn with training on one device, the best predicted first: what is kept when it is broken off. */
async function measureCuts(
  { task, common }: CutSearch,
  cuts: readonly CutResult[],
  scout: Trainer,
  progress: Progress,
  stopped: () => boolean,
): Promise<{ rounds: ReadonlyMap<CutResult, CutRounds>; failure?: unknown }> {
  const rounds = new Map<CutResult, CutRounds>();
  const order = cuts.toSorted((a, b) => a.predictedSeconds! - b.predictedSeconds!);
  const { devices = [] } = common;
  await using single = await distribute(task.makeModel(), {
    ...common,
    strategy: "single",
    devices: devices.slice(0, 1),
  });
  single.compile(task.compile());
  const reference = single.steps(task.data, { batchSize: task.batch });
  try {
    await reference.next();
    for (const [i, cut] of order.entries()) {
      if (stopped()) break;
      const { partition, splitSize } = cut;
      progress.tick([i, cuts.length], `${partition.join(" | ")} in micro-batches of ${splitSize}`);
      await scout.repartition({ partition, splitSize });
      rounds.set(cut, await measureCut(scout, reference, task, progress));
    }
    return { rounds };
  } catch (failure) {
    return { rounds, failure };
  } finally {
    await reference.return();
  }
}

async function measureCut(
  scout: Trainer,
  reference: ReturnType<Trainer["steps"]>,
  task: Task,
  progress: Progress,
): Promise<CutRounds> {
  const steps = scout.steps(task.data, { batchSize: task.batch });
  const next = async (of: typeof steps) => (await of.next()).value!.wallMs / 1000;
  const rounds = { cut: [] as number[], single: [] as number[] };
  try {
    await steps.next();
    for (let round = 0; round < ROUNDS; round++) {
      const turns = [
        async () => rounds.single.push(await next(reference)),
        async () => rounds.cut.push(await next(steps)),
      ];
      for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    }
    return rounds;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // a cut that a device's memory does not hold is left out
    progress.log(error.message);
    return { cut: [], single: [] };
  } finally {
    await steps.return();
  }
}

/**
 * What cuts were measured at, side by side though they ran minutes apart: each one's speedup against its own rounds of
 * the reference, and the reference's median over all.
 */
export function withRounds(
  cuts: readonly CutResult[],
  rounds: ReadonlyMap<CutResult, CutRounds>,
): CutResult[] {
  const reference = [...rounds.values()].flatMap(({ single }) => single);
  return cuts.map((cut) => {
    const own = rounds.get(cut);
    if (!own || own.cut.length === 0) return cut;
    const speedup = median(own.cut.map((seconds, round) => own.single[round]! / seconds));
    return {
      ...cut,
      secondsPerStep: median(reference) / speedup,
      rounds: own.cut,
      singleRounds: own.single,
      speedup,
    };
  });
}

function least(cuts: readonly CutResult[], of: (cut: CutResult) => number): CutResult {
  return cuts.reduce((best, cut) => of(cut) < of(best) ? cut : best);
}
