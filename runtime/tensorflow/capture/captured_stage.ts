/** A stage whose F, B, W and update run as one call into TensorFlow each. @module */
import { tf } from "../../../deps.ts";
import type { TensorSpec } from "../../../ring/dtype.ts";
import type { LayerCost } from "../../../stages/balance.ts";
import type { Clipping } from "../../../stages/clipping.ts";
import type {
  MicroBatch,
  OpenSums,
  ProfileInputs,
  SegmentExecutor,
  Value,
  Workload,
} from "../../../stages/executor.ts";
import type { OptimizerSpec, UpdateScalars } from "../../../stages/optimizers.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import type { Context } from "../binding/context.ts";
import { HandleTensors } from "../binding/engine_tensors.ts";
import { readHandle } from "../binding/tensor.ts";
import { Variable } from "../binding/variable.ts";
import { captureInference } from "./capture_inference.ts";
import { captureTraining } from "./capture_training.ts";
import { functionCounters } from "./captured_function.ts";
import { CapturedUpdate, type UpdateVariables } from "./captured_update.ts";
import { EXTRA, type Frame, freeHandles, HANDED, SAVED, setHandles } from "./frame.ts";
import { profileLayers } from "./profile_layers.ts";
import {
  drawRandom,
  type InferenceProgram,
  makeFrame,
  type Program,
  type StageVariables,
  type StatisticsCall,
  type TrainProgram,
} from "./program.ts";
import { ProgramCache } from "./program_cache.ts";

/** One micro-batch between its F and its last backward. */
interface InFlight {
  readonly program: TrainProgram;
  readonly frame: Frame;
}

/** Executes a stage by captured functions. A `Value` is a tensor handle (`bigint`). */
export class CapturedStage implements SegmentExecutor {
  readonly #backend: NodeBackend;
  readonly #variables: UpdateVariables;
  readonly #update: CapturedUpdate | undefined;
  readonly #programs = new ProgramCache();
  readonly #inFlight = new Map<number, InFlight>();
  #results: bigint[] = [];
  #firstWeight = true;

  /** @param optimizer undefined for a stage that is not trained */
  constructor(
    backend: NodeBackend,
    readonly model: StageModel,
    readonly seed: number,
    optimizer: OptimizerSpec | undefined,
    clipping?: Clipping,
    replicas = 1,
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
    this.#update = optimizer &&
      new CapturedUpdate(backend, model, this.#variables, optimizer, clipping, replicas > 1);
  }

  get #context(): Context {
    return this.#backend.binding.context;
  }

  /** What a step adds up. */
  get #summed(): Variable[] {
    const { accumulators, statistics } = this.#variables;
    return [...accumulators, statistics].filter((variable) => variable !== undefined);
  }

  /** What programs read and write. */
  get #stageVariables(): StageVariables {
    return {
      accumulators: this.#variables.accumulators,
      statistics: (order) => this.#statistics(order),
    };
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
    else freeHandles(this.#context, frame[SAVED], program.savedForW);
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

  openSums(): OpenSums {
    const open = this.#summed.map((variable) => variable.openValues());
    return { values: open.map(({ values }) => values), close: () => open.forEach((value) => value.close()) };
  }

  useSums(values: readonly Float32Array<SharedArrayBuffer>[]): void {
    const tensors = new HandleTensors(this.#context);
    this.#update!.use(
      new Map(this.#summed.map((variable, i) => {
        const { buffer, byteOffset, byteLength } = values[i]!;
        const spec = { shape: variable.shape, dtype: "float32" as const };
        const { value } = tensors.receive(spec, new Uint8Array(buffer, byteOffset, byteLength));
        return [variable, value as bigint];
      })),
    );
  }

  gradientNorm(): number {
    return this.#update!.norm();
  }

  update(scalars: UpdateScalars, scale?: number): number {
    this.#firstWeight = true;
    return this.#update!.run(scalars, scale);
  }

  infer(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[] {
    const [program, frame, out] = this.#callForward<InferenceProgram>(microBatch, inputs, targets, workload);
    if (program.hasResults) this.#results.push(out[program.outputCount]!);
    freeHandles(this.#context, frame[HANDED]);
    return Array.from(out.subarray(0, program.outputCount));
  }

  profile(
    workload: Workload,
    inputs: () => ProfileInputs,
    rounds: number,
    budgetMs: number,
  ): Record<string, LayerCost> {
    try {
      return profileLayers(this.#backend, this.model, this.#stageVariables, this.seed, {
        workload,
        inputs,
        rounds,
        budgetMs,
      });
    } finally {
      this.reset();
    }
  }

  takeResults(): Float32Array {
    const context = this.#context;
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
    freeHandles(this.#context, BigUint64Array.from(this.#results.splice(0)));
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
    this.#programs.dispose();
    this.#update?.dispose();
    this.model.dispose();
    const { weights, accumulators, statistics } = this.#variables;
    for (const variable of [...weights, ...accumulators, statistics]) variable?.dispose();
  }

  /** Runs F. What was handed over is freed if it fails: it became the stage's own. */
  #callForward<P extends Program>(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): [program: P, frame: Frame, out: BigUint64Array] {
    let handed = BigUint64Array.from([...inputs, ...targets] as bigint[]);
    try {
      const program = this.#program(workload) as P;
      const frame = makeFrame(this.#context, program, microBatch, inputs, targets);
      handed = frame[HANDED];
      if ("draws" in program) drawRandom(this.#backend, program, frame, microBatch, this.seed);
      return [program, frame, program.F.call([frame])];
    } catch (error) {
      freeHandles(this.#context, handed);
      throw error;
    }
  }

  #program(workload: Workload): Program {
    const make = () => {
      if (workload.mode !== "train") return captureInference(this.#backend, this.model, workload);
      const made = captureTraining(this.#backend, this.model, this.#stageVariables, workload);
      this.#update?.prepare(made.added);
      return made;
    };
    const busy = (program: Program) => [...this.#inFlight.values()].some((f) => f.program === program);
    return this.#programs.get(workload.key, make, busy);
  }

  #statistics(order: readonly StatisticsCall[]): Variable {
    const variables = this.#variables;
    if (!variables.statistics) {
      const channels = order.reduce((sum, call) => sum + call.channels, 0);
      variables.statistics = new Variable(this.#context, "statistics", {
        shape: [3 * channels],
        dtype: "float32",
      });
      variables.statistics.assign(new Float32Array(3 * channels));
      variables.statisticsOrder = order;
    }
    return variables.statistics;
  }

  /** Frees what a micro-batch still holds. */
  #finish(index: number): void {
    const flight = this.#inFlight.get(index);
    if (!flight) return;
    this.#inFlight.delete(index);
    for (const handles of flight.frame) freeHandles(this.#context, handles);
  }
}
