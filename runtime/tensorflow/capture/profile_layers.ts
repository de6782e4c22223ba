/** What each layer of a captured stage costs. @module */
import type { LayerCost } from "../../../stages/balance.ts";
import type { ProfileInputs, Workload } from "../../../stages/executor.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import type { NodeBackend } from "../binding/backend.ts";
import { readDoubles } from "../binding/tensor.ts";
import { captureTraining } from "./capture_training.ts";
import { EXTRA, freeHandles, HANDED, SAVED, setHandles } from "./frame.ts";
import { addTimes, LayerClock, medianCosts } from "./layer_clock.ts";
import { disposeProgram, drawRandom, makeFrame, type StageVariables } from "./program.ts";

/** What to run, and how long. */
export interface ProfileTask {
  readonly workload: Workload;
  /** Makes what a micro-batch is given; the profile frees it. */
  inputs(): ProfileInputs;
  /** Rounds after one that warms up. */
  readonly rounds: number;
  /** No further round begins later than this, after the first. */
  readonly budgetMs: number;
}

/**
 * Runs F, B and W with clocks between the layers.
 *
 * @returns milliseconds of each layer, medians over rounds
 * @throws {CaptureError} if the stage's layers cannot be captured
 */
export function profileLayers(
  backend: NodeBackend,
  model: StageModel,
  variables: StageVariables,
  seed: number,
  { workload, inputs, rounds, budgetMs }: ProfileTask,
): Record<string, LayerCost> {
  const { context } = backend.binding;
  const clock = new LayerClock();
  const split = { ...workload, split: true, weightBatches: [] };
  const program = captureTraining(backend, model, variables, split, clock);
  const costs = new Map<string, Record<keyof LayerCost, number[]>>();
  const take = (part: keyof LayerCost, handle: bigint, round: number) => {
    // The first round warms up.
    if (round > 0) addTimes(costs, part, program.stamps[part], readDoubles(context, handle));
    context.tf.TFE_DeleteTensorHandle(handle);
  };
  const start = performance.now();
  try {
    for (let round = 0; round <= rounds; round++) {
      if (round > 1 && performance.now() - start > budgetMs) break;
      const { x, targets, outputGradients } = inputs();
      const size = workload.inputs[0]?.shape[0] ?? 1;
      const microBatch = { index: 0, step: round, firstSample: 0, size, batchSize: size };
      const frame = makeFrame(context, program, microBatch, x, targets);
      drawRandom(backend, program, frame, microBatch, seed);
      const out = program.F.call([frame]);
      const saved = program.layout.saved.length;
      take("F", out[out.length - saved - 1]!, round);
      frame[SAVED] = out.slice(out.length - saved);
      freeHandles(context, out.subarray(0, out.length - saved - 1));
      setHandles(frame[HANDED], program.positions.outputGradients, outputGradients);
      if (program.B) {
        const back = program.B.call([frame]);
        take("B", back[program.inputGradientCount]!, round);
        frame[EXTRA] = back.slice(program.inputGradientCount + 1);
        freeHandles(context, back.subarray(0, program.inputGradientCount));
      }
      if (program.W) take("W", program.W.later.call([frame])[0]!, round);
      for (const handles of frame) freeHandles(context, handles);
    }
  } finally {
    disposeProgram(program);
  }
  return medianCosts(costs);
}
