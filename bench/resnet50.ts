/** The ResNet50 comparison: sequential, data parallel, naive model parallel, pipeline. @module */
import { tf } from "../deps.ts";
import { imageFolder } from "../runtime/data/image_folder.ts";
import { mnist } from "../runtime/data/mnist.ts";
import type { Samples } from "../runtime/data/samples.ts";
import { synthetic } from "../runtime/data/synthetic.ts";
import { machineInfo } from "../runtime/machine/machine.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import { resnet50 } from "../stages/resnet50.ts";
import { compare, type Entry, type Field, oncePerLine, type Outcome } from "./compare.ts";
import { commonOptions, dataParallelEntries, Measured, SEED, singleEntries } from "./entries.ts";
import type { BenchOptions } from "./options.ts";
import { startTorchPeers } from "./peers/torch.ts";
import type { Progress } from "../cli/progress.ts";
import type { Resnet50Results, StrategyResult } from "./results.ts";

/** Samples of the synthetic data: a few batches, so that steps see new ones. */
const SYNTHETIC_BATCHES = 4;

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
): Promise<Outcome> {
  progress.phase("loading data", 2);
  const { data, classes, loss } = await loadData(options);
  const { torch, strategies } = options;
  return await compare(
    {
      task: {
        makeModel: () =>
          resnet50({
            inputShape: [options.size, options.size, 3],
            classes,
            activation: loss === "meanSquaredError" ? "linear" : "softmax",
            seed: SEED,
          }),
        compile: () => ({ optimizer: tf.train.sgd(0.01), loss }),
        data,
        batch: options.batch,
      },
      entries: resnet50Entries(options, commonOptions(options, names, oncePerLine(progress))),
      steps: options.steps,
      ...(torch
        ? {
          peers: () =>
            startTorchPeers(torch, {
              ...options,
              model: "resnet50",
              devices: names.length,
              pipeline: strategies.includes("pipeline"),
              dataParallel: strategies.includes("dataParallel"),
            }, progress),
        }
        : {}),
      weights: { up: 40, rounds: 100 },
    },
    progress,
    stopped,
    (field) => summarize(options, names, { classes, loss }, field),
  );
}

/** The strategies in the order in which they come up: a pipeline before what else is cut, for its partition serves it. */
export function resnet50Entries(
  options: Pick<BenchOptions, "strategies" | "schedules" | "microBatches" | "partition">,
  common: DistributeOptions,
): Entry[] {
  const { strategies, schedules, microBatches, partition } = options;
  const list = singleEntries(options, common);
  if (strategies.includes("pipeline")) {
    for (const schedule of schedules) {
      list.push({
        name: schedule,
        options: { ...common, strategy: "pipeline", schedule, microBatches, partition },
      });
    }
  }
  if (strategies.includes("modelParallel")) {
    list.push({ name: "modelParallel", options: { ...common, strategy: "modelParallel", partition } });
  }
  return [...list, ...dataParallelEntries(options, common)];
}

function summarize(
  options: BenchOptions,
  devices: readonly string[],
  { classes, loss }: { classes: number; loss: string },
  { contestants, peers, rounds, failure }: Field,
): Outcome {
  const { size, batch, microBatches, steps, data } = options;
  const measured = new Measured(contestants, (result) => result);
  const pipeline: Record<string, StrategyResult> = {};
  for (const schedule of options.schedules) Object.assign(pipeline, measured.entry(schedule));
  const resnet50: Resnet50Results = {
    settings: { size, batch, microBatches, steps, devices, data, classes, loss },
    ...measured.entry("single"),
    ...measured.dataParallel(),
    ...measured.entry("modelParallel"),
    ...(Object.keys(pipeline).length > 0 ? { pipeline } : {}),
    ...(peers.length > 0
      ? { peers: Object.fromEntries(peers.map((p) => [p.name, p.result(measured.single)])) }
      : {}),
  };
  return {
    results: {
      machine: machineInfo(),
      engine: contestants[0]?.trainer.engine ?? options.engine,
      date: new Date().toISOString(),
      resnet50,
    },
    timelines: contestants.flatMap((contestant) => contestant.timeline() ?? []),
    rounds,
    steps,
    ...(failure === undefined ? {} : { failure }),
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
