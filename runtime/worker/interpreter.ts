/**
 * Runs one stage's actions: the one interpreter for every schedule. It moves messages between rings and the
 * executor, which computes.
 * @module
 */
import type { AbortFlag } from "../../ring/abort.ts";
import type { Group } from "../../ring/group.ts";
import type { MessageKey } from "../../ring/header.ts";
import { type RingChannel, type RingCounters, RingReceiver, RingSender } from "../../ring/ring.ts";
import type { EngineTensors, StageExecutor, Value } from "../../stages/executor.ts";
import type { UpdateScalars } from "../../stages/optimizers.ts";
import type { LaneSetup, Prediction, StepCommand, StepReport, TraceEvent } from "../protocol.ts";
import { type Action, formatAction } from "../schedules/action.ts";
import type { NormClipping } from "./norm_clipping.ts";

/** Gives a slot back. */
type Release = () => void;

/** A stage's rings, opened. */
export class Lane {
  readonly inputs: readonly RingReceiver[];
  readonly targets: readonly RingReceiver[];
  readonly outputs: readonly RingSender[];
  readonly outputGradients: readonly RingReceiver[];
  readonly inputGradients: readonly RingSender[];
  readonly #counters: readonly Readonly<RingCounters>[];

  constructor(setup: LaneSetup, abort: AbortFlag) {
    const receive = (channel: RingChannel) => new RingReceiver(channel, abort);
    const send = (channel: RingChannel) => new RingSender(channel, abort);
    this.inputs = setup.inputs.map(receive);
    this.targets = setup.targets.map(receive);
    this.outputs = setup.outputs.map(send);
    this.outputGradients = setup.outputGradients.map(receive);
    this.inputGradients = setup.inputGradients.map(send);
    const rings = [this.inputs, this.targets, this.outputs, this.outputGradients, this.inputGradients].flat();
    this.#counters = rings.map((ring) => ring.counters);
  }

  /** Milliseconds waited on these rings so far. */
  get waitMs(): number {
    let sum = 0;
    for (const { waitMs } of this.#counters) sum += waitMs;
    return sum;
  }

  /** Drops what lies in the incoming rings. */
  reset(): void {
    for (const ring of [...this.inputs, ...this.targets, ...this.outputGradients]) ring.reset();
  }

  /** Counters of every ring, by name and side. */
  counters(): Record<string, RingCounters> {
    const out: Record<string, RingCounters> = {};
    for (const ring of [...this.inputs, ...this.targets, ...this.outputGradients]) {
      out[`receive ${ring.channel.name}`] = { ...ring.counters };
    }
    for (const ring of [...this.outputs, ...this.inputGradients]) {
      out[`send ${ring.channel.name}`] = { ...ring.counters };
    }
    return out;
  }
}

/** Runs steps of one stage. */
export class Interpreter {
  /** The action that runs, for errors. */
  current: Action | undefined;
  /** Optimizer step. */
  step = -1;
  readonly #held = new Map<number, Release[]>();
  #copyMs = 0;

  /**
   * @param clipping where gradients are clipped by their norm
   * @param sums by which replicas add up
   */
  constructor(
    readonly executor: StageExecutor,
    readonly tensors: EngineTensors,
    readonly abort: AbortFlag,
    readonly clipping?: NormClipping,
    readonly sums?: Group,
  ) {}

  /** @throws {AbortedError} when another stage failed, or what the executor throws */
  run(lane: Lane, command: StepCommand): StepReport {
    const trace: TraceEvent[] = [];
    const predictions: Prediction[][] = [];
    let penalty = 0;
    this.step = command.scalars.iteration;
    for (const action of command.actions) {
      this.current = action;
      this.abort.check();
      const start = performance.now();
      const waited = this.#waitMs(lane);
      const busy = this.executor.engineMs;
      this.#copyMs = 0;
      if (action.kind === "U") penalty = this.#update(command.scalars);
      else if (action.kind === "R") this.executor.reduce?.();
      else if (action.kind === "F") this.#forward(lane, command, action.microBatch, predictions);
      else if (action.kind === "W") this.#weight(action);
      else this.#backward(lane, command, action);
      if (command.trace) {
        trace.push({
          action,
          start: performance.timeOrigin + start,
          end: performance.timeOrigin + performance.now(),
          wait: this.#waitMs(lane) - waited,
          copy: this.#copyMs,
          engine: this.executor.engineMs - busy,
        });
      }
    }
    this.current = undefined;
    return { results: this.executor.takeResults(), penalty, trace, predictions };
  }

  /** Forgets what is in flight, after a run that failed. */
  reset(): void {
    this.#held.clear();
    this.clipping?.reset();
    this.current = undefined;
  }

  #waitMs(lane: Lane): number {
    return lane.waitMs + (this.clipping?.waitMs ?? 0) + (this.sums?.waitMs ?? 0);
  }

  #forward(
    lane: Lane,
    { step, microBatches, workloads }: StepCommand,
    index: number,
    predictions: Prediction[][],
  ): void {
    const microBatch = microBatches[index]!;
    const workload = workloads[index]!;
    const key = { step, microBatch: index };
    const fed = microBatch.size > 0; // a replica may have no share of a micro-batch
    const inputs = fed ? lane.inputs.map((ring, i) => this.#receive(ring, key, workload.inputs[i])) : [];
    const targets = fed ? lane.targets.map((ring, i) => this.#receive(ring, key, workload.targets[i])) : [];
    if (workload.mode === "train") {
      const outputs = this.executor.forward(microBatch, inputs, targets, workload);
      this.#sendAll(lane.outputs, outputs, key);
      return;
    }
    if (!fed) return;
    const made = this.executor.infer(microBatch, inputs, targets, workload);
    this.#sendAll(lane.outputs, made.slice(0, lane.outputs.length), key);
    made.slice(lane.outputs.length).forEach((value, i) => {
      const spec = this.tensors.specOf(value);
      const data = new ArrayBuffer(this.tensors.byteLengthOf(value));
      this.tensors.copyTo(value, new Uint8Array(data));
      this.tensors.free(value);
      (predictions[i] ??= []).push({ ...spec, data });
    });
    this.#releaseAll(index); // what was made may have shared a slot's memory until now
  }

  #backward(lane: Lane, { step }: StepCommand, { kind, microBatch }: Action): void {
    const key = { step, microBatch };
    const gradients = lane.outputGradients.map((ring) => this.#receive(ring, key));
    const sent = this.executor.backward(microBatch, gradients);
    this.#sendAll(lane.inputGradients, sent, key);
    if (kind === "BW") this.#releaseAll(microBatch); // what was sent may have shared a slot's memory until now
  }

  #weight({ microBatch, count }: Action): void {
    const indices = Array.from({ length: count }, (_, i) => microBatch + i);
    this.executor.weight(indices);
    for (const index of indices) this.#releaseAll(index);
  }

  /** @returns the layers' penalty */
  #update(scalars: UpdateScalars): number {
    const { clipping, executor } = this;
    return executor.update(scalars, clipping?.scale(executor.gradientNorm()));
  }

  #receive(
    ring: RingReceiver,
    key: Omit<MessageKey, "tensor">,
    expected?: { shape: readonly number[] },
  ): Value {
    const message = ring.receive({ ...key, tensor: ring.channel.tensor });
    if (expected && expected.shape.join() !== message.shape.join()) {
      throw new RangeError(
        `Received a tensor of shape [${message.shape}] from ring "${ring.channel.name}": expected [${expected.shape}]`,
      );
    }
    const { value, inPlace } = this.tensors.receive(message, message.payload);
    const release = () => ring.release(message.sequence);
    if (inPlace) {
      const held = this.#held.get(key.microBatch);
      if (held) held.push(release);
      else this.#held.set(key.microBatch, [release]);
    } else release();
    return value;
  }

  #sendAll(rings: readonly RingSender[], values: readonly Value[], key: Omit<MessageKey, "tensor">): void {
    rings.forEach((ring, i) => {
      const value = values[i]!;
      const { tensor } = ring.channel;
      const byteLength = this.tensors.byteLengthOf(value);
      ring.send({ ...key, tensor, ...this.tensors.specOf(value), byteLength }, (payload) => {
        const start = performance.now();
        this.tensors.copyTo(value, payload);
        this.#copyMs += performance.now() - start;
      });
      this.tensors.free(value);
    });
  }

  #releaseAll(microBatch: number): void {
    for (const release of this.#held.get(microBatch) ?? []) release();
    this.#held.delete(microBatch);
  }
}

/** An action as text, or what else a worker does. */
export function describeAction(action: Action | undefined, otherwise: string): string {
  return action ? formatAction(action) : otherwise;
}
