/** Finds out, before training, whether the backend has a kernel for every op that a stage runs. @module */
import { tf } from "../../deps.ts";
import type { TensorSpec } from "../../ring/dtype.ts";
import type { RandomSource } from "../../stages/context.ts";
import type { Workload } from "../../stages/executor.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import { type Around, backward, dependence, record, weightGradients } from "../../stages/tape.ts";
import { engine, type TapeNode } from "../../stages/tfjs.ts";

/** Thrown for a stage that runs an op which the engine has no kernel for. */
export class MissingKernelError extends Error {
  override readonly name = "MissingKernelError";

  /** @param doing what cannot be done: "train" or another of a workload's modes */
  constructor(doing: Workload["mode"], readonly layer: string | undefined, readonly kernel: string) {
    const what = layer === undefined ? "the loss" : `layer "${layer}"`;
    super(
      `Cannot ${doing === "train" ? "train" : "compute"} ${what} on engine "wasm": it lacks kernel "${kernel}"; ` +
        `use engine "tensorflow"`,
    );
  }
}

/**
 * Runs the stage forward, and backward if it is to be trained, on one sample of zeros.
 *
 * @throws {MissingKernelError} for the first op that has no kernel. What else may fail on zeros is left to the
 * step, which tells where it failed.
 */
export function checkKernels(model: StageModel, workload: Workload, random: RandomSource): void {
  const layers = new LayerTrace(model);
  const scope = engine();
  scope.startScope("stagger.check");
  try {
    if (workload.mode === "train") train(model, workload, random, layers);
    else infer(model, workload);
  } catch (error) {
    const kernel = missingKernel(error);
    if (kernel !== undefined) throw new MissingKernelError(workload.mode, layers.current, kernel);
  } finally {
    layers.stop();
    scope.endScope();
  }
}

function train(model: StageModel, { inputs, targets }: Workload, random: RandomSource, layers: LayerTrace) {
  const { config, trainable } = model;
  const x = inputs.map(oneSample);
  let hasLoss = false;
  const kept: tf.Tensor[] = [];
  const recording = record(() => {
    const made = model.train(x, targets.map(oneSample), tf.scalar(1), random);
    for (const { mean, variance } of made.statistics) kept.push(mean, variance);
    hasLoss = made.loss !== undefined;
    return made.loss ? [...made.outputs, made.loss] : made.outputs;
  });
  try {
    const dependent = dependence(
      recording.nodes,
      x.map((tensor, i) => ({ tensor, wanted: config.inputs[i]!.needsGradient })),
      trainable.map(({ variable }) => variable.val.id),
    );
    const seeds = recording.outputs.map((output, i) =>
      i < config.outputs.length && !config.outputs[i]!.needsGradient ? undefined : tf.zerosLike(output)
    );
    const wanted = x.filter((_, i) => config.inputs[i]!.needsGradient);
    const { pending } = backward(recording, seeds, wanted, dependent, layers.around);
    weightGradients(recording, pending, dependent, (gradient) =>
      layers.around(gradient.node, () => gradient.run()));
  } finally {
    recording.dispose();
    tf.dispose([...recording.outputs, ...kept]);
  }
}
