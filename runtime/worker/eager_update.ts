/** Gradients, statistics and slots of an eager stage, and the update that uses them. @module */
import { tf } from "../../deps.ts";
import type { Clipping } from "../../stages/clipping.ts";
import type { BatchStatistics, RunningStatistics } from "../../stages/context.ts";
import type { OpenSums } from "../../stages/executor.ts";
import type { UpdateRule, UpdateScalars } from "../../stages/optimizers.ts";
import type { StageModel } from "../../stages/stage_model.ts";

/** What is added up of a BatchNorm: mean, its square, variance. */
const KINDS = 3;

/** What an eager stage adds up over a batch, and its optimizer. */
export class EagerUpdate {
  /** By position in the stage's weights. */
  readonly #gradients = new Map<number, tf.Tensor>();
  readonly #slots = new Map<number, tf.Tensor[]>();
  #statistics: { layer: RunningStatistics; sums: tf.Tensor[] }[] = [];
  /** The calls whose statistics were added up last, with their channels. */
  #known: { layer: RunningStatistics; size: number }[] = [];
  /** The layers' penalty, once its gradients were added. */
  #penalty: number | undefined;

  /** @param rule undefined for a stage that is not trained */
  constructor(
    readonly model: StageModel,
    readonly rule: UpdateRule | undefined,
    readonly clipping: Clipping | undefined,
  ) {}

  /** Adds to the gradient of the weight at `position`. */
  addGradient(position: number, gradient: tf.Tensor): void {
    const sum = this.#gradients.get(position);
    this.setGradient(position, sum ? tf.add(sum, gradient) : gradient);
  }

  /** Replaces the gradient of the weight at `position`. */
  setGradient(position: number, gradient: tf.Tensor): void {
    const before = this.#gradients.get(position);
    this.#gradients.set(position, tf.keep(tf.clone(gradient)));
    before?.dispose();
  }

  /** What has been added up for the weight at `position`. */
  gradient(position: number): tf.Tensor | undefined {
    return this.#gradients.get(position);
  }

  /** Adds a micro-batch's share of BatchNorm statistics, which it frees. */
  addStatistics(statistics: readonly BatchStatistics[], share: tf.Tensor): void {
    tf.tidy(() => {
      statistics.forEach(({ layer, mean, variance }, i) => {
        const now = [mean, tf.square(mean), variance].map((t) => tf.mul(t, share));
        const before = this.#statistics[i]?.sums;
        const sums = now.map((t, j) => tf.keep(before ? tf.add(before[j]!, t) : t));
        if (before) tf.dispose(before);
        this.#statistics[i] = { layer, sums };
      });
    });
    for (const { mean, variance } of statistics) tf.dispose([mean, variance]);
  }

  /** What was added up: gradients of the trained weights, then the statistics of all calls, one kind after another. */
  openSums(): OpenSums {
    const gradients = this.#trained.map(({ position, size }) =>
      this.#gradients.get(position)?.dataSync() as Float32Array ?? new Float32Array(size)
    );
    if (this.#statistics.length > 0) {
      this.#known = this.#statistics.map(({ layer, sums }) => ({ layer, size: sums[0]!.size }));
    }
    const channels = this.#known.reduce((sum, { size }) => sum + size, 0);
    if (channels === 0) return { values: gradients, close: () => {} };
    const statistics = new Float32Array(KINDS * channels);
    let at = 0;
    for (let kind = 0; kind < KINDS; kind++) {
      this.#known.forEach(({ size }, call) => {
        const sums = this.#statistics[call]?.sums;
        if (sums) statistics.set(sums[kind]!.dataSync(), at);
        at += size;
      });
    }
    return { values: [...gradients, statistics], close: () => {} };
  }

  /** Puts the sums of all replicas in place of these. */
  useSums(values: readonly Float32Array[]): void {
    this.#trained.forEach(({ position, shape }, i) =>
      tf.tidy(() => this.setGradient(position, tf.tensor(values[i]!.slice(), shape)))
    );
    const statistics = values[this.#trained.length];
    if (!statistics) return;
    for (const { sums } of this.#statistics) tf.dispose(sums);
    let at = 0;
    const taken = Array.from(
      { length: KINDS },
      () => this.#known.map(({ size }) => tf.keep(tf.tensor1d(statistics.slice(at, at += size)))),
    );
    this.#statistics = this.#known.map(({ layer }, call) => ({
      layer,
      sums: taken.map((kind) => kind[call]!),
    }));
  }

  /** The norm of what was added up, the penalties' gradients included. */
  norm(): number {
    this.#penalty ??= this.#addPenalties();
    let sum = 0; // on the host, where squares do not overflow
    for (const gradient of this.#gradients.values()) {
      const values = gradient.dataSync();
      for (let i = 0; i < values.length; i++) sum += values[i]! ** 2; // ten times as fast as an iterator
    }
    return Math.sqrt(sum);
  }

  /** Updates weights and running statistics. @returns the layers' penalty */
  run(step: UpdateScalars, scale = 1): number {
    const rule = this.rule!;
    const penalty = this.#penalty ?? this.#addPenalties();
    const values = rule.scalars(step);
    const scalars = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, tf.scalar(value)]),
    );
    for (const [position, { spec, variable }] of this.model.weights.entries()) {
      if (!spec.trainable) continue;
      tf.tidy(() => { // each by itself: what it makes on the way may be several times the weight
        const weight = variable.val;
        const slots = this.#slotsOf(position, weight.shape);
        const gradient = this.#gradients.get(position) ?? tf.zeros(weight.shape);
        const after = rule.apply(weight, this.#clipped(gradient, scale), slots, scalars);
        weight.assign(after.weight);
        this.#slots.set(position, after.slots.map((t) => tf.keep(t)));
        tf.dispose(slots);
      });
    }
    tf.dispose(scalars);
    tf.tidy(() => this.#moveStatistics());
    this.reset();
    return penalty;
  }

  /** Tensors of a weight's shape that are kept for each weight that is trained, and those that are there yet. */
  get slots(): { readonly perWeight: number; readonly there: readonly tf.Tensor[] } {
    return { perWeight: this.rule?.slots.length ?? 0, there: [...this.#slots.values()].flat() };
  }

  /** Runs the rule on a weight of its own, between `before` and `after`. */
  rehearse(size: number, before: () => void, after: () => void): void {
    const rule = this.rule;
    if (!rule) return;
    tf.tidy(() => {
      const [weight, gradient] = [tf.zeros([size]), tf.zeros([size])];
      const slots = rule.slots.map(({ initial }) => tf.fill([size], initial));
      const values = rule.scalars({ learningRate: 0, iteration: 0 });
      const scalars = Object.fromEntries(Object.entries(values).map(([k, v]) => [k, tf.scalar(v)]));
      before();
      // A scale other than 1: it takes memory.
      tf.tidy(() => void rule.apply(weight, this.#clipped(gradient, 0.5), slots, scalars));
      after();
    });
  }

  /** Forgets what was added up. */
  reset(): void {
    this.#penalty = undefined;
    for (const gradient of this.#gradients.values()) gradient.dispose();
    this.#gradients.clear();
    for (const { sums } of this.#statistics) tf.dispose(sums);
    this.#statistics = [];
  }

  dispose(): void {
    this.reset();
    for (const slots of this.#slots.values()) tf.dispose(slots);
    this.#slots.clear();
  }

  get #trained(): { position: number; shape: number[]; size: number }[] {
    return this.model.weights.flatMap(({ spec, variable }, position) =>
      spec.trainable ? [{ position, shape: variable.shape, size: variable.val.size }] : []
    );
  }

  /** A gradient as the rule takes it. */
  #clipped(gradient: tf.Tensor, scale: number): tf.Tensor {
    if (!this.clipping) return gradient;
    const { by, limit } = this.clipping;
    if (by === "value") return tf.clipByValue(gradient, -limit, limit);
    return scale === 1 ? gradient : tf.mul(gradient, scale);
  }

  /** The layers' penalties, once a batch. */
  #addPenalties(): number {
    const { model } = this;
    if (!model.penalized) return 0;
    return tf.tidy(() => {
      const trainable = model.weights.flatMap(({ spec, variable }, i) =>
        spec.trainable ? [{ variable, i }] : []
      );
      const f = () => model.penalty() as tf.Scalar;
      if (trainable.length === 0) return f().dataSync()[0]!; // all frozen
      const { value, grads } = tf.variableGrads(f, trainable.map(({ variable }) => variable.val));
      for (const { variable, i } of trainable) {
        const gradient = grads[variable.val.name];
        if (gradient) this.addGradient(i, gradient);
      }
      return value.dataSync()[0]!;
    });
  }

  /** As the captured update does: the variance of the batch is that within micro-batches and that of their means. */
  #moveStatistics(): void {
    for (const { layer, sums: [mean, square, within] } of this.#statistics) {
      const variance = tf.add(within!, tf.maximum(tf.sub(square!, tf.square(mean!)), 0));
      for (const [target, value] of [[layer.movingMean, mean!], [layer.movingVariance, variance]] as const) {
        const old = target.val;
        old.assign(tf.sub(old, tf.mul(tf.sub(old, value), 1 - layer.momentum)));
      }
    }
  }

  #slotsOf(position: number, shape: number[]): tf.Tensor[] {
    return this.#slots.get(position) ??
      this.rule!.slots.map(({ initial }) => tf.keep(tf.fill(shape, initial)));
  }
}
