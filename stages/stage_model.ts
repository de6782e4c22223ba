/** The layers of one stage, rebuilt from their configs, and the forward that they run. @module */
import { tf } from "../deps.ts";
import { type BatchStatistics, type RandomSource, withContext } from "./context.ts";
import { type GraphLayer, refKey } from "./graph.ts";
import { registerLayers } from "./layers/register.ts";
import type { ResolvedLosses } from "./losses.ts";
import type { StageConfig, StageWeight } from "./stage_config.ts";
import { internals, type Layer, layerClass, type LayerVariable, type Model } from "./tfjs.ts";

/** A weight with the variable that the stage's layers read it from. */
export interface BoundWeight {
  readonly spec: StageWeight;
  readonly variable: LayerVariable;
}

/** What a forward of a stage answers with. */
export interface StageForward {
  /** For the next stage, in the order of the config's `outputs`. */
  readonly outputs: tf.Tensor[];
  /** The micro-batch's share of the batch's loss, to be differentiated; undefined where no output lies here. */
  readonly loss: tf.Tensor | undefined;
  /** `[1 + metrics]`: shares of loss and metrics of the model's outputs that lie here, 0 for others'. */
  readonly results: tf.Tensor | undefined;
  readonly statistics: readonly BatchStatistics[];
}

/** Told when a layer begins and ends to compute. */
export interface LayerProbe {
  enter(layer: string): void;
  leave(layer: string): void;
}

/** One stage's layers. */
export class StageModel {
  readonly model: tf.LayersModel;
  readonly weights: readonly BoundWeight[];
  /** The layer that computes right now: errors name it. */
  currentLayer: string | undefined;
  probe: LayerProbe | undefined;
  readonly #inner: Model;
  readonly #layers = new Map<string, Layer>();
  /** Which of the model's outputs each wanted tensor is: a tensor may be wanted twice. */
  #wanted: number[] = [];

  constructor(readonly config: StageConfig, readonly losses: ResolvedLosses | undefined) {
    registerLayers();
    this.model = this.#build();
    this.#inner = internals(this.model);
    this.weights = config.weights.map((spec) => ({
      spec,
      variable: sameShape(spec, this.#variable(spec)),
    }));
  }

  /** Weights that are trained. */
  get trainable(): BoundWeight[] {
    return this.weights.filter(({ spec }) => spec.trainable);
  }

  /**
   * Runs the layers on one micro-batch.
   *
   * @param inputs in the order of the config's `inputs`
   * @param targets in the order of the config's `modelOutputs`
   * @param share the micro-batch's samples divided by the batch's, a scalar
   */
  train(inputs: tf.Tensor[], targets: tf.Tensor[], share: tf.Tensor, random: RandomSource): StageForward {
    const statistics: BatchStatistics[] = [];
    try {
      const made = withContext(
        { random: this.#streams(random), statistics },
        () => this.#call(inputs, true),
      );
      const outputs = made.slice(0, this.config.outputs.length);
      const predictions = made.slice(outputs.length);
      return { outputs, ...this.#score(predictions, targets, share), statistics };
    } catch (error) {
      for (const { mean, variance } of statistics) tf.dispose([mean, variance]);
      throw error;
    }
  }

  /** As `train`, without training: running statistics, no dropout. */
  evaluate(inputs: tf.Tensor[], targets: tf.Tensor[], share: tf.Tensor): StageForward {
    const made = this.#call(inputs, false);
    const outputs = made.slice(0, this.config.outputs.length);
    return { outputs, ...this.#score(made.slice(outputs.length), targets, share), statistics: [] };
  }

  /** Outputs for the next stage, then the model's outputs that lie here. */
  predict(inputs: tf.Tensor[]): tf.Tensor[] {
    return this.#call(inputs, false);
  }

  /** The sum of the layers' penalties; undefined if no layer has one. */
  penalty(): tf.Tensor | undefined {
    if (!this.penalized) return undefined;
    return tf.tidy(() => this.#inner.calculateLosses().reduce((a, b) => tf.add(a, b)) as tf.Tensor);
  }

  /** Whether a layer has a regularizer. */
  get penalized(): boolean {
    return this.#inner.layers.some((layer) => layer.losses.length > 0);
  }

  /** Frees the layers' weights. */
  dispose(): void {
    this.model.dispose();
    for (const { variable: { val } } of this.weights) {
      if (!val.isDisposed) val.dispose(); // tfjs keeps those of layers used twice
    }
  }

  #call(inputs: tf.Tensor[], training: boolean): tf.Tensor[] {
    const out = this.#inner.call(inputs, { training });
    const made = Array.isArray(out) ? out : [out];
    return this.#wanted.map((i) => made[i]!);
  }

  #score(
    predictions: tf.Tensor[],
    targets: tf.Tensor[],
    share: tf.Tensor,
  ): { loss: tf.Tensor | undefined; results: tf.Tensor | undefined } {
    const { losses, config } = this;
    if (!losses || predictions.length === 0) return { loss: undefined, results: undefined };
    this.currentLayer = "loss";
    const parts = config.modelOutputs.map(({ output }, i) => {
      const made: unknown = losses.losses[output]!(targets[i]!, predictions[i]!);
      if (made instanceof tf.Tensor) return tf.mean(made);
      throw new TypeError(`Cannot train on a loss of ${String(made)}: expected a tensor, made by ops of tf`);
    });
    const loss = tf.mul(parts.reduce((a, b) => tf.add(a, b)), share) as tf.Tensor;
    const metrics = losses.metrics.map(([metric, output]) => {
      const i = config.modelOutputs.findIndex((m) => m.output === output);
      if (i < 0) return tf.scalar(0);
      return tf.mul(tf.mean(tf.cast(metric(targets[i]!, predictions[i]!), "float32")), share);
    });
    return { loss, results: tf.stack([loss, ...metrics]) };
  }

  /** Random numbers by the place in the model of the layer that draws, or of the model that it lies in. */
  #streams(random: RandomSource): RandomSource {
    const places = new Map(this.config.layers.map(({ name, index }) => [name, String(index)]));
    return { uniform: (_, ...rest) => random.uniform(places.get(this.currentLayer!)!, ...rest) };
  }

  #build(): tf.LayersModel {
    const { config } = this;
    const tensors = new Map<string, tf.SymbolicTensor>();
    const inputs = config.inputs.map((input, i) => {
      const t = tf.input({
        batchShape: [null, ...input.shape.slice(1)],
        dtype: input.dtype as tf.DataType,
        name: `stage${config.index}_input${i}`,
      });
      tensors.set(refKey(input.ref), t);
      return t;
    });
    for (const layer of config.layers) this.#layers.set(layer.name, this.#rebuild(layer));
    let open = config.layers.flatMap((layer) =>
      layer.nodes.map((node, i) => ({ layer: layer.name, node, i }))
    );
    while (open.length > 0) {
      const later: typeof open = [];
      for (const use of open) {
        const from = use.node.inputs.map((ref) => tensors.get(refKey(ref)));
        if (from.some((t) => t === undefined)) {
          later.push(use);
          continue;
        }
        const layer = this.#layers.get(use.layer)!;
        const inputs = (from.length === 1 ? from[0] : from) as tf.SymbolicTensor;
        const out = layer.apply(inputs, use.node.callArgs) as tf.SymbolicTensor | tf.SymbolicTensor[];
        (Array.isArray(out) ? out : [out]).forEach((t, tensor) =>
          tensors.set(refKey({ layer: use.layer, node: use.i, tensor }), t)
        );
      }
      if (later.length === open.length) {
        throw new Error(`Cannot rebuild layer "${later[0]!.layer}": inputs are missing`);
      }
      open = later;
    }
    const wanted = [...config.outputs, ...config.modelOutputs].map(({ ref }) => tensors.get(refKey(ref))!);
    const outputs = [...new Set(wanted)];
    this.#wanted = wanted.map((t) => outputs.indexOf(t));
    return tf.model({ inputs, outputs, name: `stage_${config.index}` });
  }

  #rebuild({ className, config, name }: GraphLayer): Layer {
    const cls = layerClass(className) as unknown as {
      fromConfig(cls: unknown, config: unknown, custom: unknown, fastWeightInit: boolean): Layer;
    };
    const layer = cls.fromConfig(cls, structuredClone(config), {}, true);
    // Weights are set from the caller's model: do not draw them.
    (layer as unknown as { setFastWeightInitDuringBuild(fast: boolean): void }).setFastWeightInitDuringBuild(
      true,
    );
    // A decoder writes its initial state into the arguments, which tfjs hands to all layers after it.
    const apply = layer.apply.bind(layer);
    layer.apply = (inputs, kwargs) => apply(inputs, { ...kwargs });
    const call = layer.call.bind(layer);
    layer.call = (inputs, kwargs) => {
      this.currentLayer = name;
      this.probe?.enter(name);
      try {
        return call(inputs, kwargs);
      } finally {
        this.probe?.leave(name);
      }
    };
    return layer;
  }

  /** The weight of a rebuilt layer, by name: the order within a nested model depends on what is frozen. */
  #variable({ layer, index }: StageWeight): LayerVariable | undefined {
    const { weights } = this.#layers.get(layer)!;
    const specs = this.config.layers.find(({ name }) => name === layer)!.weights;
    const { name } = specs[index]!;
    const nth = specs.slice(0, index).filter((w) => w.name === name).length;
    return weights.filter((w) => w.originalName === name)[nth] ?? weights[index];
  }
}

/** A layer that leaves options out of its config comes back with other weights, or without some. */
function sameShape({ layer, index, shape }: StageWeight, variable: LayerVariable | undefined): LayerVariable {
  if (variable?.shape.join() === shape.join()) return variable;
  throw new Error(
    `Cannot rebuild layer "${layer}" from its config: its weight ${index} has shape ` +
      `${variable ? `[${variable.shape}]` : "none"}, expected [${shape}]; ` +
      `perhaps the layer's getConfig() leaves out what its weights depend on`,
  );
}
