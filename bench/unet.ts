/**
 * The U-Net comparison: single, data parallel, naive model parallel, and a pipeline at the best partition and split
 * size. All train alike, in turn, and are then tried on images that were held out.
 * @module
 */
import { tf } from "../deps.ts";
import type { Samples } from "../runtime/data/samples.ts";
import { machineInfo } from "../runtime/machine/machine.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import { bceDiceLoss, iou } from "../stages/segmentation.ts";
import { unet } from "../stages/unet.ts";
import type { Progress } from "../cli/progress.ts";
import { compare, type Entry, type Field, oncePerLine, type Outcome } from "./compare.ts";
import type { Contestant, Task } from "./contestant.ts";
import { type FoundCuts, searchCuts } from "./cuts.ts";
import { commonOptions, dataParallelEntries, Measured, SEED, singleEntries } from "./entries.ts";
import type { BenchOptions } from "./options.ts";
import { startTorchPeers } from "./peers/torch.ts";
import type { BenchResults, Evaluation, Example, StrategyResult, UnetResults } from "./results.ts";
import { loadMasks, type MaskData, wholeBatches } from "./unet_data.ts";

/** Name of the pipeline among those that take part. */
const PIPELINE = "pipeline";
const LEARNING_RATE = 0.05;
const MOMENTUM = 0.9;
/** Held-out images that the report shows. */
const SHOWN = 6;

/**
 * Runs the comparison.
 *
 * @param names the devices
 * @param stopped asked between cuts and before every round; true ends them, and what was measured is kept
 * @throws {Error} what went wrong before anything was measured
 */
export async function compareUnet(
  given: BenchOptions,
  names: readonly string[],
  progress: Progress,
  stopped: () => boolean,
): Promise<Outcome> {
  progress.phase("loading data", 3);
  const data = await loadMasks(given);
  const options = { ...given, steps: stepsOf(given, data.train) };
  const task: Task = {
    makeModel: () => unet({ inputShape: [options.size, options.size, 3], seed: SEED }),
    compile: () => ({
      optimizer: tf.train.momentum(LEARNING_RATE, MOMENTUM),
      loss: bceDiceLoss,
      metrics: [iou],
    }),
    data: wholeBatches(data.train, options.batch),
    batch: options.batch,
  };
  const common = commonOptions(options, names, oncePerLine(progress));
  const { strategies, partition, splitSize, enumerate, torch } = options;
  const schedule = options.schedules[0]!;
  const cuts = strategies.includes("pipeline") && names.length > 1
    ? await searchCuts(
      { task, common, schedule, enumerate, partition, ...(splitSize === undefined ? {} : { splitSize }) },
      progress,
      stopped,
    )
    : undefined;
  const settings = settingsOf(options, names, data);
  if (cuts && (!cuts.whole || stopped())) return cutsAlone(settings, cuts, options);
  return await compare(
    {
      task,
      entries: unetEntries(options, common, schedule, cuts),
      steps: options.steps,
      ...(torch
        ? {
          peers: () =>
            startTorchPeers(torch, {
              ...options,
              model: "unet",
              devices: names.length,
              pipeline: false,
              dataParallel: strategies.includes("dataParallel"),
            }, progress),
        }
        : {}),
      weights: { up: 30, rounds: 97 },
    },
    progress,
    stopped,
    (field) => summarize({ options, settings, data, cuts, schedule, field }, progress, stopped),
  );
}

/** Rounds; the one that is not timed counts for an epoch as well. */
function stepsOf({ epochs, steps, batch }: BenchOptions, { length }: Samples): number {
  return epochs === undefined ? steps : Math.max(1, epochs * Math.floor(length / batch) - 1);
}

/** The strategies in the order in which they come up. */
export function unetEntries(
  { strategies, partition }: Pick<BenchOptions, "strategies" | "partition">,
  common: DistributeOptions,
  schedule: Entry["options"]["schedule"],
  cuts: Pick<FoundCuts, "best"> | undefined,
): Entry[] {
  const list = singleEntries({ strategies }, common);
  const many = (common.devices?.length ?? 0) > 1;
  if (cuts) {
    const { partition, splitSize } = cuts.best;
    list.push({
      name: PIPELINE,
      options: { ...common, strategy: "pipeline", schedule, partition, splitSize },
    });
  }
  if (strategies.includes("modelParallel") && many) {
    list.push({
      name: "modelParallel",
      options: { ...common, strategy: "modelParallel", partition: cuts?.best.partition ?? partition },
    });
  }
  return [...list, ...dataParallelEntries({ strategies }, common)];
}

/** What the comparison came to. */
async function summarize(
  { options, settings, data, cuts, schedule, field }: {
    options: BenchOptions;
    settings: UnetResults["settings"];
    data: MaskData;
    cuts: FoundCuts | undefined;
    schedule: string;
    field: Field;
  },
  progress: Progress,
  stopped: () => boolean,
): Promise<Outcome> {
  const { contestants, peers, rounds, failure } = field;
  const { stepsPerEpoch } = settings;
  const evaluations = new Map<string, Evaluation>();
  progress.phase("trying on images that were held out", 25);
  for (const [i, contestant] of contestants.entries()) {
    if (stopped() || failure !== undefined) break;
    progress.tick([i, contestants.length], contestant.name);
    evaluations.set(contestant.name, await evaluate(contestant, data.heldOut, rounds));
  }
  const complete = (result: StrategyResult, name: string) => {
    const evaluation = evaluations.get(name);
    return {
      ...result,
      // Blocks, not the layers that begin them.
      ...(cuts && result.partition.length > 0 ? { partition: cuts.best.partition } : {}),
      secondsPerEpoch: result.secondsPerStep * stepsPerEpoch,
      ...(evaluation ? { evaluation } : {}),
    };
  };
  const measured = new Measured(contestants, complete);
  const best = measured.entry(PIPELINE)[PIPELINE];
  const results: UnetResults = {
    settings,
    ...measured.entry("single"),
    ...measured.dataParallel(),
    ...measured.entry("modelParallel"),
    ...(cuts
      ? {
        pipeline: {
          ...(best
            ? {
              best: {
                ...best,
                splitSize: cuts.best.splitSize,
                schedule,
                chosenBy: cuts.chosenBy,
              },
            }
            : {}),
          table: cuts.table,
        },
      }
      : {}),
    ...(peers.length > 0
      ? {
        peers: Object.fromEntries(peers.map((peer) => {
          const result = peer.result(measured.single);
          return [peer.name, { ...result, secondsPerEpoch: result.secondsPerStep * stepsPerEpoch }];
        })),
      }
      : {}),
  };
  const examples = evaluations.size > 0 ? await examplesOf(contestants[0]!, data.heldOut) : [];
  return {
    results: withMachine(results, contestants[0]!.trainer.engine),
    timelines: contestants.flatMap((contestant) => contestant.timeline() ?? []),
    examples,
    rounds,
    steps: options.steps,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** An enumeration that was broken off: its table, without strategies. */
export function cutsAlone(
  settings: UnetResults["settings"],
  { table, best, chosenBy, engine, failure }: FoundCuts,
  { steps }: Pick<BenchOptions, "steps">,
): Outcome {
  const { partition, splitSize, secondsPerStep } = best;
  const measured = secondsPerStep === undefined
    ? {}
    : { best: { partition, splitSize, secondsPerStep, chosenBy } };
  return {
    results: withMachine({ settings, pipeline: { ...measured, table } }, engine),
    timelines: [],
    rounds: 0,
    steps,
    ...(failure === undefined ? {} : { failure }),
  };
}

function withMachine(unet: UnetResults, engine: string): BenchResults {
  return { machine: machineInfo(), engine, date: new Date().toISOString(), unet };
}

function settingsOf(
  { size, batch, steps, data }: BenchOptions,
  devices: readonly string[],
  { train, heldOut }: MaskData,
): UnetResults["settings"] {
  return {
    size,
    batch,
    steps,
    devices,
    data,
    samples: train.length,
    heldOut: heldOut.length,
    stepsPerEpoch: Math.ceil(train.length / batch),
    loss: "bceDiceLoss",
    optimizer: `momentum ${MOMENTUM}, learning rate ${LEARNING_RATE}`,
  };
}

/** Loss and IoU of held-out images. @param rounds steps after the first, which was not timed */
async function evaluate(contestant: Contestant, heldOut: Samples, rounds: number): Promise<Evaluation> {
  await contestant.finish();
  const { batch } = contestant.task;
  const values = await contestant.trainer.evaluate(heldOut, { batchSize: batch }) as tf.Scalar[];
  const [loss, overlap] = values.map((value) => value.dataSync()[0]!);
  tf.dispose(values);
  return { steps: rounds + 1, loss: loss!, iou: overlap! };
}

/** The first held-out images, with what a trained model makes of them. */
async function examplesOf({ trainer }: Contestant, heldOut: Samples): Promise<Example[]> {
  const [height, width, channels] = heldOut.input.shape as [number, number, number];
  const pixels = height * width;
  const count = Math.min(SHOWN, heldOut.length);
  const images = new Float32Array(count * pixels * channels);
  const masks = new Float32Array(count * pixels);
  for (let i = 0; i < count; i++) {
    await heldOut.read(
      i,
      images.subarray(i * pixels * channels, (i + 1) * pixels * channels),
      masks.subarray(i * pixels, (i + 1) * pixels),
    );
  }
  const x = tf.tensor4d(images, [count, height, width, channels]);
  const logits = await trainer.predict(x, { batchSize: count }) as tf.Tensor;
  const sure = logits.dataSync() as Float32Array;
  tf.dispose([x, logits]);
  const bytes = (values: Float32Array, i: number, size: number) =>
    Uint8Array.from(values.subarray(i * size, (i + 1) * size), (value) => Math.round(value * 255));
  return Array.from({ length: count }, (_, i) => ({
    height,
    width,
    image: bytes(images, i, pixels * channels),
    mask: bytes(masks, i, pixels),
    prediction: bytes(sure.map((logit) => 1 / (1 + Math.exp(-logit))), i, pixels),
  }));
}
