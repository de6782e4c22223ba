/**
 * A stage whose ops run one by one, on whatever backend TensorFlow.js has: the reference in tests, what the
 * engine "wasm" does, and the way out for layers that cannot be captured.
 * @module
 */
import { tf } from "../../deps.ts";
import { sizeOf } from "../../ring/dtype.ts";
import type { Clipping } from "../../stages/clipping.ts";
import type { RandomSource } from "../../stages/context.ts";
import type { LayerCost } from "../../stages/balance.ts";
import type {
  MicroBatch,
  OpenSums,
  ProfileInputs,
  SegmentExecutor,
  Value,
  Workload,
} from "../../stages/executor.ts";
import type { StageWeight } from "../../stages/stage_config.ts";
import type { UpdateRule, UpdateScalars } from "../../stages/optimizers.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import {
  backward,
  type BackwardResult,
  type Dependence,
  dependence,
  type PendingGradient,
  record,
  type Recording,
  weightGradients,
} from "../../stages/tape.ts";
import { engine } from "../../stages/tfjs.ts";
import { joinPending } from "./joined_gradients.ts";
import { EagerProfile } from "./eager_profile.ts";
import { EagerUpdate } from "./eager_update.ts";

/** One micro-batch between its F and its last backward. */
interface InFlight {
  readonly recording: Recording;
  readonly inputs: readonly tf.Tensor[];
  readonly dependent: Dependence;
  readonly hasLoss: boolean;
  readonly split: boolean;
  /** Inputs and targets, alive until the last backward. */
  readonly owned: tf.Tensor[];
  pending?: readonly PendingGradient[];
}

/** Computes gradients of weights; what was accumulated before may be in them. */
export interface GradientAdder {
  run(gradient: PendingGradient): tf.Tensor;
  /** Whether the gradient of a weight's tensor holds what was accumulated. */
  added(id: number): boolean;
}

/** Executes a stage op by op. A `Value` is a `tf.Tensor`. */
export class EagerStage implements SegmentExecutor {
  engineMs = 0;
  protected readonly optimizer: EagerUpdate;
  readonly #inFlight = new Map<number, InFlight>();
  #results: tf.Tensor | undefined;
  /** Told of each op's backward, and of each gradient of weights. */
  protected observer: Pick<EagerProfile, "around" | "weight"> | undefined;

  constructor(
    readonly model: StageModel,
    rule: UpdateRule | undefined,
    readonly random: (step: number, firstSample: number) => RandomSource,
    clipping?: Clipping,
  ) {
    this.optimizer = new EagerUpdate(model, rule, clipping);
  }

  prepare(_workload: Workload): number {
    return 0;
  }

  forward(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    return this.#timed(() => {
      const x = inputs as tf.Tensor[];
      const share = tf.scalar(microBatch.size / microBatch.batchSize);
      let loss: tf.Tensor | undefined;
      let recording: Recording;
      try {
        recording = record(() => {
          const random = this.random(microBatch.step, microBatch.firstSample);
          const made = this.model.train(x, targets as tf.Tensor[], share, random);
          this.optimizer.addStatistics(made.statistics, share);
          if (made.results) this.#addResults(made.results);
          loss = made.loss;
          return [...made.outputs, ...(loss ? [loss] : [])];
        });
      } catch (error) {
        tf.dispose([...x, ...targets as tf.Tensor[]]); // they became the stage's own
        throw error;
      } finally {
        share.dispose();
      }
      const { config, trainable } = this.model;
      const dependent = dependence(
        recording.nodes,
        x.map((tensor, i) => ({ tensor, wanted: config.inputs[i]!.needsGradient })),
        trainable.map(({ variable }) => variable.val.id),
      );
      const flight: InFlight = {
        recording,
        inputs: x.filter((_, i) => config.inputs[i]!.needsGradient),
        dependent,
        hasLoss: loss !== undefined,
        split: workload.split,
        owned: [...x, ...targets as tf.Tensor[], ...(loss ? [loss] : [])],
      };
      this.#inFlight.set(microBatch.index, flight);
      // The caller frees what it is given; the tape may still read the output.
      const made = recording.outputs.slice(0, config.outputs.length).map((t) => own(t));
      if (trainable.length === 0 && flight.inputs.length === 0) this.#finish(microBatch.index);
      return made;
    });
  }

  backward(index: number, outputGradients: readonly Value[]): Value[] {
    const flight = this.#inFlight.get(index);
    if (!flight) return [];
    return this.#timed(() => {
      const { recording, inputs, dependent } = flight;
      const { outputs } = this.model.config;
      flight.owned.push(...outputGradients as tf.Tensor[]);
      const e = engine();
      e.startScope("stagger.backward");
      let survivors: tf.Tensor[] = [];
      try {
        let next = 0;
        const dys = outputs.map(({ needsGradient }) =>
          needsGradient ? outputGradients[next++] as tf.Tensor : undefined
        );
        const seeds = [...dys, ...(flight.hasLoss ? [tf.scalar(1)] : [])];
        const around = this.observer?.around;
        const back: BackwardResult = backward(recording, seeds, inputs, dependent, around);
        const gradients = back.inputGradients.map((dx, i) => own(dx ?? tf.zeros(inputs[i]!.shape)));
        if (flight.split) {
          flight.pending = back.pending;
          // What the pending gradients still read must outlive this scope.
          survivors = e.state.activeScope.track.filter((t) => !t.kept && !t.isDisposed).map((t) =>
            tf.keep(t)
          );
          flight.owned.push(...survivors);
        } else this.#accumulate(recording, dependent, back.pending);
        return gradients;
      } finally {
        e.endScope();
        if (!flight.split) this.#finish(index);
      }
    });
  }

  weight(indices: readonly number[], keep = false): void {
    const flights = indices.flatMap((index) => this.#inFlight.get(index) ?? []);
    if (flights.length === 0) return;
    this.#timed(() => {
      const joined = joinPending(flights.map(({ pending }) => pending ?? []));
      for (const [i, pending] of joined.entries()) {
        const { recording, dependent } = flights[i]!;
        tf.tidy(() => this.#accumulate(recording, dependent, pending));
      }
      if (!keep) indices.forEach((index) => this.#finish(index));
    });
  }

  openSums(): OpenSums {
    return this.#timed(() => this.optimizer.openSums());
  }

  useSums(values: readonly Float32Array<SharedArrayBuffer>[]): void {
    this.#timed(() => this.optimizer.useSums(values));
  }

  gradientNorm(): number {
    return this.#timed(() => this.optimizer.norm());
  }

  update(step: UpdateScalars, scale?: number): number {
    return this.#timed(() => this.optimizer.run(step, scale));
  }

  infer(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    return this.#timed(() => {
      try {
        return tf.tidy(() => {
          if (workload.mode === "predict") {
            return this.model.predict(inputs as tf.Tensor[]).map((t) => own(t));
          }
          const share = tf.scalar(microBatch.size / microBatch.batchSize);
          const { outputs, results } = this.model.evaluate(
            inputs as tf.Tensor[],
            targets as tf.Tensor[],
            share,
          );
          if (results) this.#addResults(results);
          return outputs.map((t) => own(t));
        });
      } finally {
        tf.dispose([...inputs, ...targets] as tf.Tensor[]);
      }
    });
  }

  profile(
    workload: Workload,
    inputs: () => ProfileInputs,
    rounds: number,
    budgetMs: number,
  ): Record<string, LayerCost> {
    const costs = new EagerProfile(this.model);
    const size = workload.inputs[0]?.shape[0] ?? 1;
    const split = { ...workload, split: true };
    this.observer = costs;
    const start = performance.now();
    let measured = 0;
    try {
      for (let round = 0; round <= rounds; round++) {
        if (round > 1 && performance.now() - start > budgetMs) break;
        if (round > 0) measured++;
        if (round === 1) costs.start(); // the first round warms up
        const { x, targets, outputGradients } = inputs();
        const microBatch = { index: 0, step: round, firstSample: 0, size, batchSize: size };
        tf.dispose(this.forward(microBatch, x, targets, split) as tf.Tensor[]);
        tf.dispose(this.backward(0, outputGradients) as tf.Tensor[]);
        this.weight([0]);
      }
    } finally {
      this.observer = undefined;
      costs.stop();
      this.reset();
    }
    return costs.perRound(measured);
  }

  takeResults(): Float32Array {
    const results = this.#results?.dataSync().slice() as Float32Array | undefined;
    this.#results?.dispose();
    this.#results = undefined;
    return results ?? new Float32Array(0);
  }

  loadWeights(memory: SharedArrayBuffer): void {
    for (const { spec, variable } of this.model.weights) {
      const values = weightView(memory, spec).slice();
      tf.tidy(() => variable.val.assign(tf.tensor(values, spec.shape as number[], spec.dtype)));
    }
  }

  storeWeights(memory: SharedArrayBuffer): void {
    for (const { spec, variable } of this.model.weights) {
      weightView(memory, spec).set(variable.val.dataSync());
    }
  }

  reset(): void {
    for (const index of [...this.#inFlight.keys()]) this.#finish(index);
    this.#results?.dispose();
    this.#results = undefined;
    this.optimizer.reset();
  }

  counts(): Record<string, number> {
    return { tensors: tf.memory().numTensors, inFlight: this.#inFlight.size };
  }

  dispose(): void {
    this.reset();
    this.optimizer.dispose();
    this.model.dispose();
  }

  #timed<T>(body: () => T): T {
    const start = performance.now();
    try {
      return body();
    } finally {
      this.engineMs += performance.now() - start;
    }
  }

  #accumulate(recording: Recording, dependent: Dependence, pending: readonly PendingGradient[]): void {
    const adder = this.observer ? undefined : this.adder();
    const run = adder?.run ?? this.observer?.weight;
    const byId = weightGradients(recording, pending, dependent, run);
    for (const [position, { variable, spec }] of this.model.weights.entries()) {
      const gradient = spec.trainable ? byId.get(variable.val.id) : undefined;
      if (!gradient) continue;
      if (adder?.added(variable.val.id)) this.optimizer.setGradient(position, gradient);
      else this.optimizer.addGradient(position, gradient);
    }
  }

  /** An engine's way to add to gradients in place, for one micro-batch. */
  protected adder(): GradientAdder | undefined {
    return undefined;
  }

  #addResults(results: tf.Tensor): void {
    const sum = this.#results;
    this.#results = tf.keep(sum ? tf.add(sum, results) : tf.clone(results));
    sum?.dispose();
  }

  #finish(index: number): void {
    const flight = this.#inFlight.get(index);
    if (!flight) return;
    this.#inFlight.delete(index);
    flight.recording.dispose();
    tf.dispose([...flight.recording.outputs]);
    tf.dispose(flight.owned);
  }
}

/** Where a weight's values lie. */
function weightView(memory: SharedArrayBuffer, { offset, shape, dtype }: StageWeight) {
  const size = sizeOf(shape);
  return dtype === "int32" ? new Int32Array(memory, offset, size) : new Float32Array(memory, offset, size);
}

/** A tensor of its own over the same values, kept: the caller's to dispose. */
function own(t: tf.Tensor): tf.Tensor {
  return tf.keep(tf.clone(t));
}
