/**
 * The ResNet50 comparison: sequential, naive model parallel, pipeline. Strategies run in turn, a step each, round
 * after round, so that a drifting machine does not decide; each is compared with `single` of the same round.
 * @module
 */
import { imageFolder } from "../runtime/data/image_folder.ts";
import { mnist } from "../runtime/data/mnist.ts";
import type { Samples } from "../runtime/data/samples.ts";
import { synthetic } from "../runtime/data/synthetic.ts";
import { machineInfo } from "../runtime/machine/machine.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import { resnet50 } from "../stages/resnet50.ts";
import { Contestant, type Task } from "./contestant.ts";
import type { BenchOptions } from "./options.ts";
import { startTorchPeers, type TorchPeer } from "./peers/torch.ts";
import type { Progress } from "../cli/progress.ts";
import type { BenchResults, StrategyResult, Timeline } from "./results.ts";

/** The comparison's outcome. */
export interface Comparison {
  readonly results: BenchResults;
  readonly timelines: Timeline[];
  /** Whole rounds. */
  readonly rounds: number;
  /** What ended the rounds before their time; those before it count. */
  readonly failure?: unknown;
}

/** Samples of the synthetic data: a few batches, so that steps see new ones. */
const SYNTHETIC_BATCHES = 4;
const SEED = 1;

/** Says in words what a trainer does when it comes up. */
const PHASES = {
  start: "starting workers",
  partition: "measuring layers and cutting the model",
  build: "building stages",
  capture: "capturing stages",
  measure: "measuring stages",
} as const;

/**
 * Runs the comparison.
 *
 * @param names the devices
 * @param stopped asked before every round; true ends them, and what was measured is kept
 * @throws {Error} what went wrong before a first round was whole
 */
export async function compareResnet50(
  options: BenchOptions,
  names: readonly string[],
  progress: Progress,
  stopped: () => boolean,
): Promise<Comparison> {
  progress.phase("loading data", 2);
  const { data, classes, loss } = await loadData(options);
  const task: Task = {
    makeModel: () =>
      resnet50({
        inputShape: [options.size, options.size, 3],
        classes,
        activation: loss === "meanSquaredError" ? "linear" : "softmax",
        seed: SEED,
      }),
    loss,
    data,
    batch: options.batch,
  };
  const told = new Set<string>(); // strategies find the same to say
  const notice = (line: string) => {
    if (!told.has(line)) progress.log(line);
    told.add(line);
  };
  const contestants: Contestant[] = [];
  let peers: TorchPeer[] = [];
  try {
    progress.phase("bringing up strategies", 40);
    const plans = entries(options, names, notice);
    let partition = options.partition;
    for (const [i, [name, distributeOptions]] of plans.entries()) {
      if (stopped()) break;
      const at = (detail: string) => progress.tick([i, plans.length], `${name}: ${detail}`);
      at("building the model");
      const shared = distributeOptions.strategy === "single" ? {} : { partition };
      const contestant = await Contestant.enter(
        name,
        task,
        { ...distributeOptions, ...shared },
        (phase) => at(PHASES[phase]),
      );
      contestants.push(contestant);
      // Pipelines and the naive split share the partition that the first of them found.
      if (distributeOptions.strategy !== "single" && partition === "auto") {
        partition = contestant.trainer.partition;
      }
      at("first step");
      await contestant.warmUp();
    }
    if (options.torch && !stopped()) {
      progress.phase("starting torch", 30);
      peers = await startTorchPeers(options.torch, {
        ...options,
        devices: names.length,
        pipeline: options.strategies.includes("pipeline"),
      }, progress);
    }
    progress.phase("training in turn", 100);
    let failure: unknown;
    try {
      await runRounds(options.steps, contestants, peers, progress, stopped);
    } catch (error) {
      failure = error;
    }
    const rounds = Math.min(...[...contestants, ...peers].map((contestant) => contestant.rounds.length));
    if (rounds === 0 || contestants.length === 0) {
      throw failure ?? new Error("Interrupted before a round was whole: nothing was measured");
    }
    for (const contestant of [...contestants, ...peers]) contestant.keep(rounds);
    return { ...summarize(options, names, { classes, loss }, contestants, peers), rounds, failure };
  } finally {
    for (const contestant of contestants) await contestant.leave();
    for (const peer of peers) peer.stop();
  }
}

/** The strategies in the order in which they come up: a pipeline first, for its partition serves the others. */
function entries(
  options: BenchOptions,
  devices: readonly string[],
  notice: (line: string) => void,
): [string, DistributeOptions][] {
  const common: DistributeOptions = { engine: options.engine, devices, seed: SEED, notice };
  const list: [string, DistributeOptions][] = [];
  if (options.strategies.includes("pipeline")) {
    for (const schedule of options.schedules) {
      list.push([schedule, {
        ...common,
        strategy: "pipeline",
        schedule,
        microBatches: options.microBatches,
      }]);
    }
  }
  if (options.strategies.includes("modelParallel")) {
    list.push(["modelParallel", { ...common, strategy: "modelParallel" }]);
  }
  if (options.strategies.includes("single")) {
    list.push(["single", { ...common, strategy: "single", devices: devices.slice(0, 1) }]);
  }
  return list;
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

function summarize(
  options: BenchOptions,
  devices: readonly string[],
  { classes, loss }: { classes: number; loss: string },
  contestants: readonly Contestant[],
  peers: readonly TorchPeer[],
): Pick<Comparison, "results" | "timelines"> {
  const byName = new Map(contestants.map((contestant) => [contestant.name, contestant]));
  const single = byName.get("single")?.rounds;
  const result = (name: string) => byName.get(name)?.result(single);
  const pipeline: Record<string, StrategyResult> = {};
  for (const schedule of options.schedules) {
    const measured = result(schedule);
    if (measured) pipeline[schedule] = measured;
  }
  const engine = contestants[0]?.trainer.engine ?? options.engine;
  return {
    results: {
      machine: machineInfo(),
      engine,
      date: new Date().toISOString(),
      resnet50: {
        settings: {
          size: options.size,
          batch: options.batch,
          microBatches: options.microBatches,
          steps: options.steps,
          devices,
          data: options.data,
          classes,
          loss,
        },
        ...(byName.has("single") ? { single: result("single")! } : {}),
        ...(byName.has("modelParallel") ? { modelParallel: result("modelParallel")! } : {}),
        ...(Object.keys(pipeline).length > 0 ? { pipeline } : {}),
        ...(peers.length > 0
          ? { peers: Object.fromEntries(peers.map((p) => [p.name, p.result(single)])) }
          : {}),
      },
    },
    timelines: contestants.flatMap((contestant) => contestant.timeline() ?? []),
  };
}

async function loadData(options: BenchOptions): Promise<{ data: Samples; classes: number; loss: string }> {
  const shape = [options.size, options.size, 3] as [number, number, number];
  if (options.data === "synthetic") {
    const data = synthetic({
      input: shape,
      target: 1000,
      count: SYNTHETIC_BATCHES * options.batch,
      seed: SEED,
    });
    return { data, classes: 1000, loss: "meanSquaredError" };
  }
  const data = options.data === "mnist" ? await mnist({ shape }) : await imageFolder(options.data, { shape });
  return { data, classes: data.target.shape[0]!, loss: "categoricalCrossentropy" };
}
