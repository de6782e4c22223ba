/**
 * A replica's segments as one stage. As soon as the last backward of a segment has run, its gradients go to the
 * sums of all replicas, while backward goes on with the segment before it. Moments of synchronized BatchNorm are
 * added up between two segments, and so are their gradients.
 * @module
 */
import type { TensorSpec } from "../../ring/dtype.ts";
import type { Group } from "../../ring/group.ts";
import { joinedNorm } from "../../stages/clipping.ts";
import type {
  EngineTensors,
  MicroBatch,
  SegmentExecutor,
  StageExecutor,
  Value,
  Workload,
} from "../../stages/executor.ts";
import type { UpdateScalars } from "../../stages/optimizers.ts";
import { sumSlots } from "../../stages/replica_config.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import type { StageMemory } from "../../stages/stage_memory.ts";
import type { LayerCost } from "../../stages/balance.ts";
import { GradientBuckets } from "./gradient_buckets.ts";
import { wire, type Wiring } from "./segment_wiring.ts";

/** One segment. */
export interface Segment {
  readonly config: StageConfig;
  readonly executor: SegmentExecutor;
}

/** One micro-batch between its F and its backward. */
interface InFlight {
  readonly microBatch: MicroBatch;
  /** Memory of moments, which tensors use in place. */
  readonly moments: SharedArrayBuffer[];
}

/** Executes segments in turn; a `Value` is the engine's. */
export class ChainedStage implements StageExecutor {
  engineMs = 0;
  /** The segment that computes, or did so last. */
  current = 0;
  readonly #buckets: GradientBuckets;
  readonly #lengths: readonly number[];
  readonly #wiring: readonly Wiring[];
  readonly #inFlight = new Map<number, InFlight>();
  /** Tensors on their way from one segment to another, by destination and `refKey`; gradients on their way back. */
  readonly #values = new Map<string, Value>();
  /** Whether this replica has had a sample in the present step. */
  #contributes = false;

  constructor(
    readonly segments: readonly Segment[],
    readonly tensors: EngineTensors,
    readonly group: Group,
  ) {
    this.#buckets = new GradientBuckets(group, segments.map(({ executor }) => executor));
    const slots = sumSlots(segments.map(({ config }) => config));
    this.#lengths = slots.lengths;
    this.#wiring = segments.map(({ config }) => wire(config, slots));
  }

  prepare(workload: Workload): number {
    return this.#each((executor, i) => executor.prepare(part(workload, i))).reduce((a, b) => a + b, 0);
  }

  /** Of one segment: what several take together is not told. */
  memory(workload: Workload): StageMemory | undefined {
    const [only, ...others] = this.segments;
    return others.length > 0 ? undefined : only!.executor.memory?.(part(workload, 0));
  }

  forward(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    const flight: InFlight = { microBatch, moments: [] };
    this.#inFlight.set(microBatch.index, flight);
    if (microBatch.size > 0) this.#contributes = true;
    const given = { inputs: [...inputs], targets: [...targets] };
    for (const [i, { config, executor }] of this.segments.entries()) {
      if (microBatch.size > 0) {
        const x = this.#inputsOf(i, given.inputs);
        const y = given.targets.splice(0, config.modelOutputs.length);
        this.#keep(
          this.#wiring[i]!.outputs,
          this.#timed(i, () => executor.forward(microBatch, x, y, part(workload, i))),
        );
      }
      // All replicas' moments in place of this one's, which count by its samples.
      const factors = { own: shareOfMicroBatch(microBatch), sum: 1 };
      for (const { at, slot } of this.#wiring[i]!.moments) this.#addUp(flight, slot, at, factors);
    }
    return [];
  }

  backward(index: number): Value[] {
    const flight = this.#inFlight.get(index);
    if (!flight) return [];
    const { microBatch } = flight;
    for (let i = this.segments.length - 1; i >= 0; i--) {
      const { inputGradients, outputGradients, momentGradients } = this.#wiring[i]!;
      // The sum of all replicas' gradients, as far as this one's moments count.
      const factors = { own: 1, sum: shareOfMicroBatch(microBatch) };
      for (const { at, slot } of momentGradients) this.#addUp(flight, slot, at, factors);
      if (microBatch.size > 0) {
        const dys = outputGradients.map((at) => this.#take(at));
        this.#keep(
          inputGradients,
          this.#timed(i, () => this.segments[i]!.executor.backward(index, dys)),
        );
      }
      if (microBatch.last) this.#buckets.begin(i, this.#contributes);
    }
    this.#inFlight.delete(index);
    return [];
  }

  weight(): void {
    throw new Error("Cannot run W apart from B: a replica's backward is one");
  }

  /** Waits for the sums of all replicas. */
  reduce(): void {
    this.#buckets.finish();
  }

  gradientNorm(): number {
    return joinedNorm(this.#each((executor) => executor.gradientNorm()));
  }

  update(scalars: UpdateScalars, scale?: number): number {
    const penalty = this.#each((executor) => executor.update(scalars, scale)).reduce((a, b) => a + b, 0);
    this.#buckets.release();
    this.#contributes = false;
    return penalty;
  }

  infer(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    if (microBatch.size === 0) return [];
    const given = { inputs: [...inputs], targets: [...targets] };
    return this.segments.flatMap(({ config, executor }, i) => {
      const x = this.#inputsOf(i, given.inputs);
      const y = workload.mode === "predict" ? [] : given.targets.splice(0, config.modelOutputs.length);
      const made = this.#timed(i, () => executor.infer(microBatch, x, y, part(workload, i)));
      this.#keep(this.#wiring[i]!.outputs, made);
      return made.slice(config.outputs.length);
    });
  }

  profile(): Record<string, LayerCost> {
    throw new Error("Cannot measure the layers of a replica: it is not cut by their cost");
  }

  takeResults(): Float32Array {
    let sum = new Float32Array(0);
    for (const results of this.#each((executor) => executor.takeResults())) {
      if (results.length === 0) continue;
      sum = sum.length === 0 ? results.slice() : sum.map((value, i) => value + results[i]!);
    }
    return sum;
  }

  loadWeights(memory: SharedArrayBuffer): void {
    this.#each((executor) => executor.loadWeights(memory));
  }

  storeWeights(memory: SharedArrayBuffer): void {
    this.#each((executor) => executor.storeWeights(memory));
  }

  reset(): void {
    for (const value of this.#values.values()) this.tensors.free(value);
    this.#values.clear();
    this.#inFlight.clear();
    this.#contributes = false;
    this.#each((executor) => executor.reset());
    this.#buckets.reset();
  }

  counts(): Record<string, number> {
    const all = this.#each((executor) => executor.counts());
    // Segments count what the engine has in all, but for micro-batches in flight.
    const inFlight = all.reduce((sum, counts) => sum + (counts["inFlight"] ?? 0), this.#inFlight.size);
    return { ...all[0], inFlight, values: this.#values.size };
  }

  dispose(): void {
    this.reset();
    this.#each((executor) => executor.dispose());
  }

  /** A segment's inputs: the model's, in order, and what segments before it have made. */
  #inputsOf(segment: number, given: Value[]): Value[] {
    return this.#wiring[segment]!.inputs.map((at) => at === undefined ? given.shift() : this.#take(at));
  }

  /** Keeps the first values for the segments that need them. */
  #keep(places: readonly string[], values: readonly Value[]): void {
    places.forEach((at, i) => this.#values.set(at, values[i]!));
  }

  #take(at: string): Value {
    const value = this.#values.get(at);
    this.#values.delete(at);
    return value;
  }

  /** Puts the sum over all replicas in place of a tensor of this one's. @param factors of its own and of the sum */
  #addUp(
    { microBatch, moments }: InFlight,
    slot: number,
    at: string,
    factors: { readonly own: number; readonly sum: number },
  ): void {
    const { group, tensors } = this;
    const length = this.#lengths[slot]!;
    const bytes = new SharedArrayBuffer(Math.max(64, 4 * length));
    const values = new Float32Array(bytes, 0, length);
    const payload = new Uint8Array(bytes, 0, 4 * length);
    let spec: TensorSpec | undefined;
    if (microBatch.size > 0) { // without a sample it adds zeros
      const own = this.#take(at);
      spec = tensors.specOf(own);
      tensors.copyTo(own, payload);
      tensors.free(own);
      for (let i = 0; i < length; i++) values[i]! *= factors.own;
    }
    const read = (from: number, target: Float32Array) =>
      target.set(values.subarray(from, from + target.length));
    const sum = group.reduce(slot, length, { read }).finish();
    if (spec) {
      for (let i = 0; i < length; i++) values[i] = sum[i]! * factors.sum;
      const { value, inPlace } = tensors.receive(spec, payload);
      if (inPlace) moments.push(bytes); // it must outlive the tensor
      this.#values.set(at, value);
    }
    group.release(slot);
  }

  #each<T>(f: (executor: SegmentExecutor, i: number) => T): T[] {
    return this.segments.map(({ executor }, i) => this.#timed(i, () => f(executor, i)));
  }

  /** Counts a segment's time in the engine, which several may share. */
  #timed<T>(segment: number, body: () => T): T {
    const { executor } = this.segments[segment]!;
    const before = executor.engineMs;
    this.current = segment;
    try {
      return body();
    } finally {
      this.engineMs += executor.engineMs - before;
    }
  }
}

/** This replica's samples, of those of the micro-batch. */
function shareOfMicroBatch({ size, wholeSize = size }: MicroBatch): number {
  return size / wholeSize;
}

/** What a segment runs. */
function part(workload: Workload, segment: number): Workload {
  return workload.segments?.[segment] ?? workload;
}
