/** Finds out, before training, whether the backend has a kernel for every op that a stage runs. @module */
import { tf } from "../../deps.ts";
import type { TensorSpec } from "../../ring/dtype.ts";
import type { RandomSource } from "../../stages/context.ts";
import type { Workload } from "../../stages/executor.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import { type Around, backward, dependence, record, weightGradients } from "../../stages/tape.ts";
import { engine, type TapeNode } from "../../stages/tfjs.ts";

/** A stage runs an op that the engine has no kernel for. */
export class MissingKernelError extends Error {
  override readonly name = "MissingKernelError";

  /** @param layer the layer that needs it; undefined for the loss */
  constructor(mode: Workload["mode"], readonly layer: string | undefined, readonly kernel: string) {
    const doing = mode === "train" ? "train" : "compute";
    const what = layer === undefined ? "the loss" : `layer "${layer}"`;
    super(
      `Cannot ${doing} ${what} on engine "wasm": it lacks kernel "${kernel}"; use engine "tensorflow"`,
    );
  }
}

/**
 * Runs the stage forward on one sample of zeros, and backward if it is to be trained.
 *
 * @throws {MissingKernelError} for the first op that has no kernel. Whatever else fails is left to the step,
 * which has the real samples and tells where it failed.
 */
export function checkKernels(model: StageModel, workload: Workload, random: RandomSource): void {
  const layers = new LayerTrace(model);
  const inputs = workload.inputs.map(oneSample);
  const targets = workload.targets.map(oneSample);
  try {
    tf.tidy(() => {
      if (workload.mode === "train") train(model, inputs, targets, random, layers);
      else if (workload.mode === "predict") model.predict(inputs);
      else model.evaluate(inputs, targets, tf.scalar(1));
    });
  } catch (error) {
    const kernel = missingKernel(error);
    if (kernel !== undefined) throw new MissingKernelError(workload.mode, layers.current, kernel);
  } finally {
    layers.stop();
    tf.dispose([...inputs, ...targets]);
  }
}

function train(
  model: StageModel,
  inputs: tf.Tensor[],
  targets: tf.Tensor[],
  random: RandomSource,
  layers: LayerTrace,
): void {
  const { config, trainable } = model;
  const kept: tf.Tensor[] = [];
  try {
    const recording = record(() => {
      const { outputs, loss, statistics } = model.train(inputs, targets, tf.scalar(1), random);
      for (const { mean, variance } of statistics) kept.push(mean, variance);
      return loss ? [...outputs, loss] : outputs;
    });
    kept.push(...recording.outputs, ...recording.nodes.flatMap(({ saved }) => saved ?? []));
    const dependent = dependence(
      recording.nodes,
      inputs.map((tensor, i) => ({ tensor, wanted: config.inputs[i]!.needsGradient })),
      trainable.map(({ variable }) => variable.val.id),
    );
    const seeds = recording.outputs.map((output, i) =>
      config.outputs[i]?.needsGradient === false ? undefined : tf.zerosLike(output)
    );
    const wanted = inputs.filter((_, i) => config.inputs[i]!.needsGradient);
    const { pending } = backward(recording, seeds, wanted, dependent, layers.around);
    weightGradients(
      recording,
      pending,
      dependent,
      (gradient) => layers.around(gradient.node, () => gradient.run()),
    );
  } finally {
    tf.dispose(kept);
  }
}

/** Knows which layer computes, forward and backward. */
class LayerTrace {
  readonly #layerOf = new Map<TapeNode, string>();
  #backward: { readonly layer: string | undefined } | undefined;

  constructor(readonly model: StageModel) {
    let begin = 0;
    const tape = () => engine().state.activeTape ?? [];
    model.probe = {
      enter: () => void (begin = tape().length),
      leave: (layer) => {
        for (const node of tape().slice(begin)) this.#layerOf.set(node, layer);
      },
    };
  }

  /** The layer; undefined for the loss. */
  get current(): string | undefined {
    if (this.#backward) return this.#backward.layer;
    return this.model.currentLayer === "loss" ? undefined : this.model.currentLayer;
  }

  /** Runs the backward of one op. */
  readonly around: Around = (node, body) => {
    this.#backward = { layer: this.#layerOf.get(node) };
    return body();
  };

  stop(): void {
    this.model.probe = undefined;
  }
}

/** The kernel that an error of tfjs-core's misses. */
function missingKernel(error: unknown): string | undefined {
  return /^Kernel '(\w+)' not registered for backend/.exec((error as Error)?.message ?? "")?.[1];
}

function oneSample({ shape, dtype }: TensorSpec): tf.Tensor {
  return tf.zeros([1, ...shape.slice(1)], dtype);
}
