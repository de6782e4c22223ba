/** Runs a model's stages one after the other in one thread, as the interpreter does, captured or eager. @module */
import { tf } from "../../deps.ts";
import { align, byteLengthOf, type DType, type TensorSpec } from "../../ring/dtype.ts";
import { EagerStage } from "../../runtime/worker/eager_stage.ts";
import { CapturedStage } from "../../runtime/tensorflow/capture/captured_stage.ts";
import { eagerSource } from "../../runtime/tensorflow/capture/random.ts";
import { wasmSource } from "../../runtime/wasm/random.ts";
import type { StartedBackend } from "../../runtime/wasm/start_backend.ts";
import { WasmStage } from "../../runtime/wasm/wasm_stage.ts";
import { WasmTensors } from "../../runtime/wasm/wasm_tensors.ts";
import { WeightMemory } from "../../runtime/weight_memory.ts";
import type { EngineTensors, MicroBatch, StageExecutor, Value, Workload } from "../../stages/executor.ts";
import type { FunctionLike } from "../../stages/functions.ts";
import { modelGraph } from "../../stages/graph.ts";
import { portableLosses, type ResolvedLosses, resolveLosses } from "../../stages/losses.ts";
import {
  type OptimizerConfig,
  type OptimizerSpec,
  optimizerSpec,
  updateRule,
  type UpdateScalars,
} from "../../stages/optimizers.ts";
import { type StageConfig, stageConfigs, weightKey } from "../../stages/stage_config.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { internals } from "../../stages/tfjs.ts";
import { engine, numbers } from "./engine.ts";

/** Memory as rings have it: page aligned, so that TensorFlow takes what lies there without a copy. */
const PAGES = 256;
const { buffer } = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
const shared = buffer as unknown as SharedArrayBuffer;
let taken = 0;

/** A tensor on the host, samples first. */
export interface Host extends TensorSpec {
  readonly values: Float32Array | Int32Array | Uint8Array;
}

/** A model with what its stages are built from. */
export interface Prepared {
  readonly model: tf.LayersModel;
  readonly memory: WeightMemory;
  readonly configs: readonly StageConfig[];
  readonly losses: ResolvedLosses;
}

/** How a step is run. */
export interface StepOptions {
  /** Samples in each micro-batch. Default: the batch as one. */
  readonly sizes?: readonly number[];
  /** W apart from B. */
  readonly split?: boolean;
  /** With `split`: micro-batches that one W takes. */
  readonly weightBatch?: number;
  /** Whether a micro-batch's backward comes before the next one's forward. */
  readonly alternate?: boolean;
  readonly scalars?: Partial<UpdateScalars>;
  /** Whether to leave the update out. */
  readonly hold?: boolean;
}

/** Numbers for a tensor: hashed, or those of `values`. */
export function host(shape: number[], seed = 1, dtype: DType = "float32"): Host {
  const count = shape.reduce((a, b) => a * b, 1);
  if (dtype === "float32") return { shape, dtype, values: numbers(count, seed) };
  return { shape, dtype, values: Int32Array.from(numbers(count, seed), (v) => Math.floor((v + 1) * 4)) };
}

/** Describes a model's stages, its weights set to hashed numbers that a layer can live with, or left as drawn. */
export async function prepare(
  model: tf.LayersModel,
  {
    loss = "meanSquaredError" as FunctionLike,
    metrics = [] as FunctionLike[],
    cuts = [] as number[],
    drawn = false,
  } = {},
): Promise<Prepared> {
  if (!drawn) hashWeights(model);
  const graph = modelGraph(model);
  const memory = new WeightMemory(model, graph);
  await memory.load();
  const losses = await resolveLosses(graph.outputs, portableLosses({ loss, metrics }));
  return { model, memory, configs: stageConfigs(graph, { cuts }, memory.layout), losses };
}

function hashWeights(model: tf.LayersModel): void {
  let seed = 100;
  for (const layer of internals(model).layers) {
    for (const weight of layer.weights) {
      const count = weight.shape.reduce((a, b) => a * b, 1);
      const [scale, shift] = /variance|gamma/.test(weight.originalName) ? [0.25, 1] : [0.4, 0];
      const hashed = numbers(count, seed++);
      const values = weight.dtype === "int32"
        ? Int32Array.from(hashed, (v) => Math.floor(v * 2 ** 30) + 1) // more digits than a float has
        : hashed.map((v) => v * scale + shift);
      tf.tidy(() => void weight.write(tf.tensor(values, weight.shape, weight.dtype)));
    }
  }
}

/** How stages run: recorded as functions or op by op on "tensorflow", or on "wasm", once that is started. */
export type StageKind = "captured" | "eager" | StartedBackend;

/** What runs stages of a kind; its backend must be TensorFlow.js's. */
function runner(
  kind: StageKind,
  optimizer: OptimizerSpec,
  seed: number,
): { tensors: EngineTensors; execute: (model: StageModel) => StageExecutor } {
  if (typeof kind === "object") {
    const random = (step: number, firstSample: number) => wasmSource(kind, { seed, step, firstSample });
    return {
      tensors: new WasmTensors(kind.backend),
      execute: (model) => new WasmStage(model, optimizer, random, kind),
    };
  }
  const { backend, tensors, eagerTensors } = engine;
  if (kind === "captured") {
    return { tensors, execute: (model) => new CapturedStage(backend, model, seed, optimizer) };
  }
  const random = (step: number, firstSample: number) => eagerSource(backend, { seed, step, firstSample });
  return { tensors: eagerTensors, execute: (model) => new EagerStage(model, updateRule(optimizer), random) };
}

/** A model's stages at work. */
export class Stages {
  readonly executors: StageExecutor[];
  readonly models: StageModel[];
  readonly #tensors: EngineTensors;
  readonly #optimizer;
  #iteration = 0;
  /** What each micro-batch was handed: to be overwritten when it is done, as a ring's slots are. */
  readonly #lent = new Map<number, Uint8Array[]>();

  constructor(
    readonly prepared: Prepared,
    kind: StageKind,
    optimizer: OptimizerConfig = { name: "sgd", learningRate: 1 },
    seed = 7,
  ) {
    this.#optimizer = optimizerSpec(optimizer);
    const { tensors, execute } = runner(kind, this.#optimizer, seed);
    this.#tensors = tensors;
    this.models = prepared.configs.map((config) => new StageModel(config, prepared.losses));
    this.executors = this.models.map(execute);
    for (const executor of this.executors) executor.loadWeights(prepared.memory.shared);
  }

  /** Trains on a batch. @returns loss with the layers' penalties, then metrics */
  step(inputs: Host[], targets: Host[], options: StepOptions = {}): number[] {
    const batchSize = inputs[0]!.shape[0]!;
    const { sizes = [batchSize], split = false, weightBatch = 1, alternate = false } = options;
    const microBatches = cut(sizes, batchSize, options.scalars?.iteration ?? this.#iteration);
    for (const microBatch of microBatches) {
      this.forward(microBatch, inputs, targets, { split, weightBatches: [weightBatch] });
      if (alternate) this.#backward(microBatch.index, split);
    }
    if (!alternate) { for (const { index } of microBatches) this.#backward(index, split); }
    if (split) {
      for (let i = 0; i < sizes.length; i += weightBatch) {
        const together = microBatches.slice(i, i + weightBatch).map(({ index }) => index);
        for (const executor of this.executors) executor.weight(together);
        for (const index of together) this.#release(index);
      }
    }
    const penalty = options.hold ? 0 : this.update(options.scalars);
    const results = this.executors.map((executor) => executor.takeResults());
    const length = Math.max(1, ...results.map((r) => r.length));
    const values = Array.from({ length }, (_, i) => results.reduce((sum, r) => sum + (r[i] ?? 0), 0));
    values[0]! += penalty;
    return values;
  }

  /** F of one micro-batch through all stages. */
  forward(
    microBatch: MicroBatch,
    inputs: Host[],
    targets: Host[],
    { split = false, weightBatches = [] as number[], mode = "train" as Workload["mode"] } = {},
  ): Host[] {
    let between: Host[] = [];
    const made: Host[] = [];
    this.executors.forEach((executor, s) => {
      const config = this.prepared.configs[s]!;
      let next = 0;
      const given = config.inputs.map(({ modelInput }) =>
        modelInput === undefined ? between[next++]! : rows(inputs[modelInput]!, microBatch)
      );
      const aims = mode === "predict"
        ? []
        : config.modelOutputs.map(({ output }) => rows(targets[output]!, microBatch));
      const workload = workloadOf(given, aims, mode, split, weightBatches);
      const values = [given, aims].map((hosts) => hosts.map((h) => this.#receive(microBatch.index, h)));
      const out = mode === "train"
        ? executor.forward(microBatch, values[0]!, values[1]!, workload)
        : executor.infer(microBatch, values[0]!, values[1]!, workload);
      const hosts = out.map((value) => this.#take(value));
      between = hosts.slice(0, config.outputs.length);
      made.push(...hosts.slice(config.outputs.length));
    });
    return made;
  }

  /** The model's outputs for a batch, without training. */
  predict(inputs: Host[]): Host[] {
    const size = inputs[0]!.shape[0]!;
    const made = this.forward(cut([size], size, 0)[0]!, inputs, [], { mode: "predict" });
    this.#release(0);
    return made;
  }

  /** Loss and metrics of a batch, without training. */
  evaluate(inputs: Host[], targets: Host[]): number[] {
    const size = inputs[0]!.shape[0]!;
    this.forward(cut([size], size, 0)[0]!, inputs, targets, { mode: "evaluate" });
    this.#release(0);
    return [...this.executors.at(-1)!.takeResults()];
  }

  /** The optimizer's update of all stages. @returns the layers' penalties */
  update(scalars: Partial<UpdateScalars> = {}): number {
    const step = { learningRate: this.#optimizer.learningRate, iteration: this.#iteration++, ...scalars };
    return this.executors.reduce((sum, executor) => sum + executor.update(step), 0);
  }

  /** Weights by layer and index. */
  weights(): Record<string, Float32Array | Int32Array> {
    const { memory, configs } = this.prepared;
    const shared = new SharedArrayBuffer(memory.shared.byteLength);
    for (const executor of this.executors) executor.storeWeights(shared);
    return Object.fromEntries(
      configs.flatMap(({ weights }) => weights).map(({ layer, index, offset, shape, dtype }) => {
        const size = shape.reduce((a, b) => a * b, 1);
        const view = dtype === "int32"
          ? new Int32Array(shared, offset, size)
          : new Float32Array(shared, offset, size);
        return [weightKey(layer, index), view.slice()];
      }),
    );
  }

  /** Drops what is in flight. */
  reset(): void {
    for (const executor of this.executors) executor.reset();
    for (const index of [...this.#lent.keys()]) this.#release(index);
  }

  dispose(): void {
    for (const executor of this.executors) executor.dispose();
  }

  #backward(index: number, split: boolean): void {
    let gradients: Host[] = [];
    for (const executor of this.executors.toReversed()) {
      const given = gradients.map((h) => this.#receive(index, h));
      gradients = executor.backward(index, given).map((value) => this.#take(value));
    }
    if (!split) this.#release(index);
  }

  #receive(index: number, { shape, dtype, values }: Host): Value {
    if (this.#lent.size === 0) taken = 0;
    const payload = new Uint8Array(shared, taken, values.byteLength);
    taken += align(values.byteLength);
    payload.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    const lent = this.#lent.get(index);
    if (lent) lent.push(payload);
    else this.#lent.set(index, [payload]);
    return this.#tensors.receive({ shape, dtype }, payload).value;
  }

  /** A ring would hold other numbers here by now. */
  #release(index: number): void {
    for (const payload of this.#lent.get(index) ?? []) payload.fill(0xc3);
    this.#lent.delete(index);
  }

  #take(value: Value): Host {
    const spec = this.#tensors.specOf(value);
    const bytes = new Uint8Array(byteLengthOf(spec));
    this.#tensors.copyTo(value, bytes);
    this.#tensors.free(value);
    const { buffer } = bytes;
    const values = spec.dtype === "float32"
      ? new Float32Array(buffer)
      : spec.dtype === "int32"
      ? new Int32Array(buffer)
      : bytes;
    return { ...spec, values };
  }
}

/** Micro-batches of these sizes. */
export function cut(sizes: readonly number[], batchSize: number, step: number): MicroBatch[] {
  let firstSample = 0;
  return sizes.map((size, index) => {
    const microBatch = { index, step, firstSample, size, batchSize };
    firstSample += size;
    return microBatch;
  });
}

/** What a stage is told of the tensors that it will be given. */
export function workloadOf(
  inputs: readonly TensorSpec[],
  targets: readonly TensorSpec[],
  mode: Workload["mode"] = "train",
  split = false,
  weightBatches: readonly number[] = [],
): Workload {
  const spec = ({ shape, dtype }: TensorSpec) => ({ shape, dtype });
  const workload = { inputs: inputs.map(spec), targets: targets.map(spec), mode, split, weightBatches };
  return { ...workload, key: JSON.stringify(workload) };
}

/** A micro-batch's samples of a batch. */
export function rows({ shape, dtype, values }: Host, { firstSample, size }: MicroBatch): Host {
  const each = values.length / shape[0]!;
  const part = values.slice(firstSample * each, (firstSample + size) * each);
  return { shape: [size, ...shape.slice(1)], dtype, values: part };
}

/** A sequential model. */
export function sequential(...layers: tf.layers.Layer[]): tf.Sequential {
  return tf.sequential({ layers });
}
