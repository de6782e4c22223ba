/** A stage whose F, B, W and update run as one call into TensorFlow each. @module */
import type { TensorSpec } from "../../../ring/dtype.ts";
import type { LayerCost } from "../../../stages/balance.ts";
import type { MicroBatch, ProfileInputs, StageExecutor, Value, Workload } from "../../../stages/executor.ts";
import type { OptimizerSpec, UpdateScalars } from "../../../stages/optimizers.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import { tf } from "../../../deps.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import { EXTRA, type Frame, HANDED, SAVED } from "./call_plan.ts";
import { functionCounters } from "./captured_function.ts";
import { captureInference, type InferenceProgram } from "./captured_inference.ts";
import { captureTraining, type StatisticsCall, type TrainProgram } from "./captured_program.ts";
import { CapturedUpdate, type UpdateVariables } from "./captured_update.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
import { addTimes, LayerClock, medianCosts } from "./layer_clock.ts";
import { drawHandles } from "./random.ts";
import { newHandle, readDoubles, readHandle } from "../binding/tensor.ts";
import { Variable } from "../binding/variable.ts";

/** Programs kept; the one used longest ago makes room. */
const MAX_PROGRAMS = 16;

/** One micro-batch between its F and its last backward. */
interface InFlight {
  readonly program: TrainProgram;
  readonly frame: Frame;
}

/** Executes a stage by captured functions. A `Value` is a tensor handle (`bigint`). */
export class CapturedStage implements StageExecutor {
  readonly #backend: NodeBackend;
  readonly #variables: UpdateVariables;
  readonly #update: CapturedUpdate | undefined;
  readonly #programs = new Map<string, TrainProgram | InferenceProgram>();
  readonly #inFlight = new Map<number, InFlight>();
  #results: bigint[] = [];
  #firstWeight = true;

  /** @param optimizer undefined for a stage that is not trained */
  constructor(
    backend: NodeBackend,
    readonly model: StageModel,
    readonly seed: number,
    optimizer: OptimizerSpec | undefined,
  ) {
    this.#backend = backend;
    const { context } = backend.binding;
    const variable = (name: string, spec: TensorSpec) => new Variable(context, name, spec);
    const weights = model.weights.map(({ spec, variable: layer }) => {
      const weight = variable(`${spec.layer}/${spec.index}`, spec);
      backend.binding.bindVariable(idOf(backend, layer.val), weight);
      return weight;
    });
    const accumulators = model.weights.map(({ spec }) => {
      if (!spec.trainable || !optimizer) return undefined;
      const accumulator = variable(`${spec.layer}/${spec.index}/gradient`, spec);
      accumulator.assign(new Float32Array(accumulator.byteLength / 4));
      return accumulator;
    });
    this.#variables = { weights, accumulators, statistics: undefined, statisticsOrder: [] };
    this.#update = optimizer && new CapturedUpdate(backend, model, this.#variables, optimizer);
  }

  get engineMs(): number {
    return functionCounters.ms;
  }

  prepare(workload: Workload): number {
    if (this.#programs.has(workload.key)) return 0;
    const start = performance.now();
    this.#program(workload);
    return (performance.now() - start) / 1000;
  }

  forward(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    const [program, frame, out] = this.#callForward<TrainProgram>(microBatch, inputs, targets, workload);
    const outputs = Array.from(out.subarray(0, program.outputCount));
    if (program.hasResults) this.#results.push(out[program.outputCount]!);
    frame[SAVED] = out.slice(out.length - program.layout.saved.length);
    this.#inFlight.set(microBatch.index, { program, frame });
    if (!program.B && !program.BW) this.#finish(microBatch.index);
    return outputs;
  }

  backward(index: number, outputGradients: readonly Value[]): Value[] {
    const flight = this.#inFlight.get(index);
    if (!flight) return []; // nothing to train here, and nobody waits for gradients
    const { program, frame } = flight;
    setHandles(frame[HANDED], program.positions.outputGradients, outputGradients);
    if (program.BW) {
      const out = (this.#firstWeight ? program.BW.first : program.BW.later).call([frame]);
      this.#firstWeight = false;
      this.#finish(index);
      return Array.from(out);
    }
    const out = program.B!.call([frame]);
    frame[EXTRA] = out.slice(program.inputGradientCount);
    if (!program.W) this.#finish(index);
    else {
      const start = performance.now();
      program.savedForW.forEach((needed, i) => {
        if (!needed) this.#delete(frame[SAVED], i);
      });
      functionCounters.ms += performance.now() - start;
    }
    return Array.from(out.subarray(0, program.inputGradientCount));
  }

  weight(indices: readonly number[], keep = false): void {
    const flights = indices.map((index) => this.#inFlight.get(index));
    const [first] = flights;
    if (first) {
      const together = indices.length === 1 ? first.program.W : first.program.batchedW.get(indices.length);
      const same = flights.every((flight) => flight!.program === first.program);
      const groups = together && same ? [flights] : flights.map((flight) => [flight]);
      for (const group of groups) {
        const { program } = group[0]!;
        const plans = group.length === 1 ? program.W! : program.batchedW.get(group.length)!;
        (this.#firstWeight ? plans.first : plans.later).call(group.map((flight) => flight!.frame));
        this.#firstWeight = false;
      }
    }
    if (!keep) { for (const index of indices) this.#finish(index); }
  }

  update(scalars: UpdateScalars): number {
    this.#firstWeight = true;
    return this.#update!.run(scalars);
  }

  infer(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    const [program, frame, out] = this.#callForward<InferenceProgram>(microBatch, inputs, targets, workload);
    if (program.hasResults) this.#results.push(out[program.outputCount]!);
    this.#freeAll(frame[HANDED]);
    return Array.from(out.subarray(0, program.outputCount));
  }

  profile(
    workload: Workload,
    inputs: () => ProfileInputs,
    rounds: number,
    budgetMs: number,
  ): Record<string, LayerCost> {
    const { context } = this.#backend.binding;
    const { accumulators } = this.#variables;
    const statistics = (order: readonly StatisticsCall[]) => this.#statistics(order);
    const clock = new LayerClock();
    const split = { ...workload, split: true, weightBatches: [] };
    const program = captureTraining(this.#backend, this.model, { accumulators, statistics }, split, clock);
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
        const frame = this.#frame(program, microBatch, x, targets);
        this.#drawRandom(program, frame, microBatch);
        const out = program.F.call([frame]);
        const saved = program.layout.saved.length;
        take("F", out[out.length - saved - 1]!, round);
        frame[SAVED] = out.slice(out.length - saved);
        this.#freeAll(out.subarray(0, out.length - saved - 1));
        setHandles(frame[HANDED], program.positions.outputGradients, outputGradients);
        if (program.B) {
          const back = program.B.call([frame]);
          take("B", back[program.inputGradientCount]!, round);
          frame[EXTRA] = back.slice(program.inputGradientCount + 1);
          this.#freeAll(back.subarray(0, program.inputGradientCount));
        }
        if (program.W) take("W", program.W.later.call([frame])[0]!, round);
        for (const handles of frame) this.#freeAll(handles);
      }
    } finally {
      for (const f of program.functions) f.dispose();
      this.reset();
    }
    return medianCosts(costs);
  }

  takeResults(): Float32Array {
    const { context } = this.#backend.binding;
    let sum = new Float32Array(0);
    for (const handle of this.#results.splice(0)) {
      const values = readHandle(context, handle) as Float32Array;
      context.tf.TFE_DeleteTensorHandle(handle);
      sum = sum.length === 0 ? values as Float32Array<ArrayBuffer> : sum.map((v, i) => v + values[i]!);
    }
    return sum;
  }

  loadWeights(memory: SharedArrayBuffer): void {
    this.model.weights.forEach(({ spec }, i) => {
      const weight = this.#variables.weights[i]!;
      weight.assignBytes(new Uint8Array(memory, spec.offset, weight.byteLength));
    });
  }

  storeWeights(memory: SharedArrayBuffer): void {
    this.model.weights.forEach(({ spec }, i) => {
      const weight = this.#variables.weights[i]!;
      weight.copyTo(new Uint8Array(memory, spec.offset, weight.byteLength));
    });
  }

  reset(): void {
    for (const index of [...this.#inFlight.keys()]) this.#finish(index);
    for (const handle of this.#results.splice(0)) {
      this.#backend.binding.context.tf.TFE_DeleteTensorHandle(handle);
    }
    const { accumulators, statistics } = this.#variables;
    for (const variable of [...accumulators, statistics]) {
      variable?.assign(new Float32Array(variable.byteLength / 4));
    }
    this.#firstWeight = true;
  }

  counts(): Record<string, number> {
    return {
      tensors: tf.memory().numTensors,
      handles: this.#backend.binding.getNumOfTensors(),
      functions: functionCounters.alive,
      inFlight: this.#inFlight.size,
    };
  }

  dispose(): void {
    this.reset();
    for (const program of this.#programs.values()) for (const f of program.functions) f.dispose();
    this.#programs.clear();
    this.#update?.dispose();
    this.model.dispose();
    const { weights, accumulators, statistics } = this.#variables;
    for (const variable of [...weights, ...accumulators, statistics]) variable?.dispose();
  }

  /** Runs F. What was handed over is freed if it fails: it became the stage's own. */
  #callForward<P extends TrainProgram | InferenceProgram>(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): [program: P, frame: Frame, out: BigUint64Array] {
    let handed = BigUint64Array.from([...inputs, ...targets] as bigint[]);
    try {
      const program = this.#program(workload) as P;
      const frame = this.#frame(program, microBatch, inputs, targets);
      handed = frame[HANDED];
      if ("draws" in program) this.#drawRandom(program, frame, microBatch);
      return [program, frame, program.F.call([frame])];
    } catch (error) {
      this.#freeAll(handed);
      throw error;
    }
  }

  #program(workload: Workload): TrainProgram | InferenceProgram {
    const { key } = workload;
    const known = this.#programs.get(key);
    if (known) {
      this.#programs.delete(key); // to the end: the order is that of use
      this.#programs.set(key, known);
      return known;
    }
    let program: TrainProgram | InferenceProgram;
    if (workload.mode === "train") {
      const { accumulators } = this.#variables;
      const statistics = (order: readonly StatisticsCall[]) => this.#statistics(order);
      const made = captureTraining(this.#backend, this.model, { accumulators, statistics }, workload);
      this.#update?.prepare(made.added);
      program = made;
    } else program = captureInference(this.#backend, this.model, workload);
    this.#programs.set(key, program);
    if (this.#programs.size > MAX_PROGRAMS) this.#evict();
    return program;
  }

  #evict(): void {
    const busy = new Set<unknown>([...this.#inFlight.values()].map(({ program }) => program));
    for (const [key, program] of this.#programs) {
      if (busy.has(program)) continue;
      for (const f of program.functions) f.dispose();
      this.#programs.delete(key);
      return;
    }
  }

  #statistics(order: readonly StatisticsCall[]): Variable {
    const variables = this.#variables;
    if (!variables.statistics) {
      const channels = order.reduce((sum, call) => sum + call.channels, 0);
      variables.statistics = new Variable(this.#backend.binding.context, "statistics", {
        shape: [3 * channels],
        dtype: "float32",
      });
      variables.statistics.assign(new Float32Array(3 * channels));
      variables.statisticsOrder = order;
    }
    return variables.statistics;
  }

  #frame(
    program: TrainProgram | InferenceProgram,
    { size, batchSize }: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
  ): Frame {
    const { layout, positions } = program;
    const handed = new BigUint64Array(layout.arguments.length);
    setHandles(handed, positions.inputs, inputs);
    setHandles(handed, positions.targets, targets);
    handed[positions.share] = newHandle(
      this.#backend.binding.context,
      TF_FLOAT,
      [],
      Float32Array.of(size / batchSize),
    );
    return [handed, new BigUint64Array(0), new BigUint64Array(0)];
  }

  #drawRandom({ draws, positions }: TrainProgram, frame: Frame, { step, firstSample }: MicroBatch): void {
    draws.forEach((draw, i) => {
      const handles = drawHandles(this.#backend, draw, { seed: this.seed, step, firstSample });
      setHandles(frame[HANDED], positions.draws + 2 * i, handles);
    });
  }

  /** Frees what a micro-batch still holds. */
  #finish(index: number): void {
    const flight = this.#inFlight.get(index);
    if (!flight) return;
    this.#inFlight.delete(index);
    for (const handles of flight.frame) this.#freeAll(handles);
  }

  /** Time inside TensorFlow too: it gives back the memory of what nothing else holds. */
  #freeAll(handles: BigUint64Array): void {
    const start = performance.now();
    for (let i = 0; i < handles.length; i++) this.#delete(handles, i);
    functionCounters.ms += performance.now() - start;
  }

  #delete(handles: BigUint64Array, i: number): void {
    const handle = handles[i]!;
    if (handle === 0n) return;
    this.#backend.binding.context.tf.TFE_DeleteTensorHandle(handle);
    handles[i] = 0n;
  }
}

/** Writes handles in a row. */
function setHandles(target: BigUint64Array, first: number, handles: readonly Value[]): void {
  for (let i = 0; i < handles.length; i++) target[first + i] = handles[i] as bigint;
}
