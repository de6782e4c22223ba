/** Trains a `tf.LayersModel` on several devices, with the methods of `tf.LayersModel`. @module */
import { tf } from "../deps.ts";
import type { TensorSpec } from "../ring/dtype.ts";
import type { ModelGraph } from "../stages/graph.ts";
import type { FunctionLike } from "../stages/functions.ts";
import { type LossArgs, portableLosses } from "../stages/losses.ts";
import {
  currentLearningRate,
  type OptimizerConfig,
  optimizerSpec,
  type UpdateScalars,
} from "../stages/optimizers.ts";
import { internals, type LossFunction } from "../stages/tfjs.ts";
import { callbackList, type Callbacks, EpochAverage, toLogs } from "./callbacks.ts";
import {
  type BatchShape,
  type CompiledSpec,
  Coordinator,
  type ProgressReport,
  type StepResult,
} from "./coordinator.ts";
import {
  type BatchSource,
  type DatasetElement,
  datasetSource,
  type HostBatch,
  samplesSource,
  tensorSource,
} from "./data/batch_source.ts";
import type { Samples } from "./data/samples.ts";
import { enableFileUrls } from "./file_io.ts";
import type { ResolvedOptions } from "./options.ts";
import type { StageCounters } from "./protocol.ts";
import { WeightMemory } from "./weight_memory.ts";

/** What `compile` takes: tfjs-layers' arguments, and optimizers and functions that tfjs cannot name. */
export interface CompileArgs {
  /** A name, a `tf.train` optimizer, or `{ name: "adamw", learningRate, weightDecay, ... }`. */
  readonly optimizer: string | tf.Optimizer | OptimizerConfig;
  /** tfjs-layers' name, a function that needs nothing but `tf` and its arguments, or one in a module. */
  readonly loss: LossArgs["loss"];
  /** Likewise; "accuracy" fits itself to the loss. */
  readonly metrics?: LossArgs["metrics"];
}

/** One tensor, several in the model's order, or by name. */
export type Data = tf.Tensor | tf.Tensor[] | { [name: string]: tf.Tensor };

/** What `fit` takes beside the data, as in tfjs-layers. */
export interface FitArgs {
  /** Samples in a batch. Default: 32. */
  readonly batchSize?: number;
  /** Default: 1. */
  readonly epochs?: number;
  /** Number of the first epoch: an interrupted run goes on with it. Default: 0. */
  readonly initialEpoch?: number;
  /** Default: true. The order is a function of the trainer's seed and of the epoch. */
  readonly shuffle?: boolean;
  /** As in tfjs-layers; losses and metrics come as numbers. */
  readonly callbacks?: Callbacks;
  /** Evaluated at each epoch's end. */
  readonly validationData?: [Data, Data] | tf.data.Dataset<tf.TensorContainer> | Samples;
  /** Share of the samples, from their end, kept for validation; for tensors. */
  readonly validationSplit?: number;
  /** How often callbacks leave this thread to others, as in tfjs-layers. */
  readonly yieldEvery?: tf.ModelFitArgs["yieldEvery"];
  /** Batches in an epoch of a dataset. Default: all that it yields. */
  readonly batchesPerEpoch?: number;
  /** Batches of a validation dataset. Default: all that it yields. */
  readonly validationBatches?: number;
  /** Taken for the sake of tfjs-layers; nothing is printed. */
  readonly verbose?: number;
}

/** What `evaluate` and `predict` take beside the data. */
export interface EvaluateArgs {
  /** Default: 32. */
  readonly batchSize?: number;
  /** Taken for the sake of tfjs-layers; nothing is printed. */
  readonly verbose?: number;
}

const FIT_ARGS = new Set([
  "batchSize",
  "epochs",
  "initialEpoch",
  "shuffle",
  "callbacks",
  "validationData",
  "validationSplit",
  "yieldEvery",
  "batchesPerEpoch",
  "validationBatches",
  "verbose",
]);

/** A model distributed over devices. Made by `distribute`. */
export class Trainer {
  readonly #model: tf.LayersModel;
  readonly #graph: ModelGraph;
  readonly #options: ResolvedOptions;
  readonly #coordinator: Coordinator;
  readonly #weights: WeightMemory;
  #args: CompileArgs | undefined;
  #compiled: CompiledSpec | undefined;
  #iteration = 0;
  #epochs = 0;
  #busy = false;
  #disposed = false;
  /** Whether steps tell what each stage did when. */
  trace = false;
  /** The last step of training. */
  lastStep: StepResult | undefined;

  /** Use `distribute`, which checks the options. */
  constructor(model: tf.LayersModel, graph: ModelGraph, options: ResolvedOptions, progress?: ProgressReport) {
    this.#model = model;
    this.#graph = graph;
    this.#options = options;
    this.#weights = new WeightMemory(model, graph);
    this.#coordinator = new Coordinator(model, graph, options, this.#weights, progress);
  }

  /** The caller's model: it holds the trained weights after `fit`, and whenever a callback is called at an epoch's end. */
  get model(): tf.LayersModel {
    return this.#model;
  }

  /** Strategy, devices and all else that was chosen. */
  get options(): ResolvedOptions {
    return this.#options;
  }

  /** What computes: the engine with its version, once the stages are up. */
  get engine(): string {
    return this.#coordinator.engine;
  }

  /** Longest time that a stage took to be captured, in seconds. */
  get captureSeconds(): number {
    return this.#coordinator.captureSeconds;
  }

  /** Bytes held from step to step: weights, accumulators, optimizer slots and rings. */
  get heldBytes(): number {
    return this.#coordinator.heldBytes;
  }

  /** Messages, waits, tensors and functions of each stage. */
  async counters(): Promise<StageCounters[]> {
    return await this.#coordinator.counters();
  }

  /** Layers that begin each stage after the first; empty before the first step. */
  get partition(): string[] {
    return this.#coordinator.cutLayers;
  }

  /** Names of what `fit` and `evaluate` report. */
  get metricsNames(): string[] {
    this.#requireCompiled();
    return internals(this.#model).getDedupedMetricsNames();
  }

  /**
   * Sets optimizer, loss and metrics.
   *
   * @throws {TypeError|RangeError} for one that Stagger or tfjs-layers does not know
   */
  compile(args: CompileArgs): void {
    const optimizer = optimizerSpec(args.optimizer);
    const losses = portableLosses(args);
    // The caller's model is compiled too: tfjs-layers checks the names, and its own methods go on working.
    const local = <T>(value: T) => localFunctions(value) as never;
    this.#model.compile({
      optimizer: args.optimizer instanceof tf.Optimizer ? args.optimizer : "sgd",
      loss: local(args.loss),
      metrics: local(args.metrics),
    });
    this.#args = args;
    this.#compiled = { optimizer, losses };
    this.#iteration = 0;
  }

  /**
   * Trains on tensors, a `tf.data.Dataset` of `{ xs, ys }` batches, or `Samples`.
   *
   * @returns losses and metrics by epoch
   * @throws {TypeError|RangeError} for data or options that do not fit, before any worker starts
   * @throws {StageError} the first error of a stage; the model holds the weights of the last whole step
   */
  async fit(x: Data, y: Data, args?: FitArgs): Promise<tf.History>;
  /** Trains on batches that a dataset or samples make. */
  async fit(data: tf.data.Dataset<tf.TensorContainer> | Samples, args?: FitArgs): Promise<tf.History>;
  async fit(
    x: Data | tf.data.Dataset<tf.TensorContainer> | Samples,
    y?: Data | FitArgs,
    more?: FitArgs,
  ): Promise<tf.History> {
    const onDemand = isDataset(x) || isSamples(x);
    const args = (onDemand ? y as FitArgs | undefined : more) ?? {};
    this.#checkFitArgs(args);
    return await this.#exclusively("fit", async (temporary) => {
      let trained: [tf.Tensor[], tf.Tensor[]] | undefined;
      let validation = args.validationData;
      if (!onDemand) {
        trained = this.#standardize(x as Data, y as Data, temporary);
        if (args.validationSplit !== undefined && validation === undefined) {
          [trained, validation] = splitTensors(trained, args.validationSplit, temporary);
        }
      }
      const epoch = this.#epochOptions(args);
      const source = trained
        ? await tensorSource(...trained, epoch)
        : await this.#source(x as Samples, epoch, args.batchesPerEpoch);
      const evaluated = validation === undefined
        ? undefined
        : await this.#validationSource(validation, args, temporary);
      return await this.#fit(source, evaluated, args);
    });
  }

  /** As `fit` on a dataset; tfjs-layers' name for it. */
  async fitDataset(dataset: tf.data.Dataset<tf.TensorContainer>, args: FitArgs = {}): Promise<tf.History> {
    return await this.fit(dataset, args);
  }

  /**
   * Brings the stages up for batches of this data: workers, partition, capture. `fit` and `steps` do it by
   * themselves; called before, it keeps the first step from waiting.
   */
  async prepare(data: Samples, { batchSize = 32 }: Pick<FitArgs, "batchSize"> = {}): Promise<void> {
    await this.#exclusively("prepare", async () => {
      const source = await this.#source(data, this.#epochOptions({ batchSize }), undefined);
      const shape = this.#shape("train", source);
      this.#coordinator.cut(shape);
      await this.#lane(shape);
    });
  }

  /**
   * Trains step by step, for loops of one's own: each `next()` runs one step, epoch after epoch without end.
   * The next batch is made while a step runs.
   */
  async *steps(
    data: Samples,
    args: Pick<FitArgs, "batchSize" | "shuffle"> = {},
  ): AsyncGenerator<StepResult, void, void> {
    this.#requireCompiled();
    const source = await this.#source(data, this.#epochOptions(args), undefined);
    const shape = this.#shape("train", source);
    this.#coordinator.cut(shape);
    const lane = await this.#lane(shape);
    try {
      for (let epoch = 0;; epoch++) {
        const batches = source.epoch(epoch);
        let next = await batches.next();
        if (!next.done) this.#coordinator.feed(lane, next.value);
        while (!next.done) {
          const { size } = next.value;
          const following = this.#prefetch(batches, lane);
          const result = await this.#coordinator.step(lane, size, this.#scalars(), this.trace);
          next = await following;
          this.#iteration++;
          this.lastStep = result;
          yield result;
        }
      }
    } finally {
      await this.#coordinator.discardFeeds();
    }
  }

  /** One step on one batch. @returns loss and metrics, the loss alone without metrics */
  async trainOnBatch(x: Data, y: Data): Promise<number | number[]> {
    return await this.#exclusively("trainOnBatch", async (temporary) => {
      const tensors = this.#standardize(x, y, temporary);
      const batchSize = tensors[0][0]!.shape[0]!;
      const source = await tensorSource(...tensors, { batchSize, shuffle: false, seed: 0 });
      const values = await this.#step(source);
      return values.length === 1 ? values[0]! : values;
    });
  }

  /** Loss and metrics on data, without training. */
  async evaluate(x: Data, y: Data, args?: EvaluateArgs): Promise<tf.Scalar | tf.Scalar[]>;
  /** Loss and metrics on batches that a dataset or samples make. */
  async evaluate(
    data: tf.data.Dataset<tf.TensorContainer> | Samples,
    args?: EvaluateArgs,
  ): Promise<tf.Scalar | tf.Scalar[]>;
  async evaluate(
    x: Data | tf.data.Dataset<tf.TensorContainer> | Samples,
    y?: Data | EvaluateArgs,
    more?: EvaluateArgs,
  ): Promise<tf.Scalar | tf.Scalar[]> {
    const onDemand = isDataset(x) || isSamples(x);
    const { batchSize = 32 } = (onDemand ? y as EvaluateArgs | undefined : more) ?? {};
    return await this.#exclusively("evaluate", async (temporary) => {
      const options = { batchSize, shuffle: false, seed: 0 };
      const source = onDemand
        ? await this.#source(x as Samples, options, undefined)
        : await tensorSource(...this.#standardize(x as Data, y as Data, temporary), options);
      const scalars = (await this.#evaluate(source)).map((value) => tf.scalar(value));
      return scalars.length === 1 ? scalars[0]! : scalars;
    });
  }

  /** The model's outputs for inputs, batch axis first. */
  async predict(x: Data, { batchSize = 32 }: EvaluateArgs = {}): Promise<tf.Tensor | tf.Tensor[]> {
    return await this.#exclusively("predict", async () => {
      const inputs = this.#inModelOrder("inputs", x);
      const source = await tensorSource(inputs, [], { batchSize, shuffle: false, seed: 0 });
      this.#checkInputs(source.inputs);
      const parts: { shape: readonly number[]; data: ArrayBuffer }[][] = this.#graph.outputs.map(() => []);
      for await (const result of this.#inferences(source, "predict")) {
        result.predictions.forEach((list, output) => parts[output]!.push(...list));
      }
      const outputs = parts.map((list) => joinRows(list));
      return outputs.length === 1 ? outputs[0]! : outputs;
    });
  }

  /** Saves the model with its present weights; `file://` works too. As `tf.LayersModel.save`. */
  async save(target: string | tf.io.IOHandler, config?: tf.io.SaveConfig): Promise<tf.io.SaveResult> {
    await this.#coordinator.storeWeights();
    if (typeof target === "string" && target.startsWith("file://")) await enableFileUrls();
    return await this.#model.save(target, config);
  }

  /** Copies the weights that the devices hold into the caller's model. */
  async syncWeights(): Promise<void> {
    await this.#coordinator.storeWeights();
  }

  /** Ends the workers; the caller's model keeps the trained weights. */
  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    try {
      await this.#coordinator.storeWeights();
    } finally {
      await this.#coordinator.stop();
    }
  }

  /** As `dispose`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  async #fit(source: BatchSource, validation: BatchSource | undefined, args: FitArgs): Promise<tf.History> {
    const { epochs = 1, initialEpoch = 0 } = args;
    const names = this.metricsNames;
    const shape = this.#shape("train", source);
    if (validation) this.#checkSource(validation);
    const coordinator = this.#coordinator;
    coordinator.cut(shape);
    const { list, history } = callbackList(args.callbacks, args.yieldEvery, this.#model, {
      epochs,
      initialEpoch,
      samples: source.samples,
      steps: source.batches,
      batchSize: source.batchSize,
      doValidation: validation !== undefined,
      metrics: validation ? [...names, ...names.map((name) => `val_${name}`)] : names,
    });
    const lane = await this.#lane(shape);
    this.#stopTraining(false);
    try {
      await list.onTrainBegin();
      for (let epoch = initialEpoch; epoch < epochs; epoch++) {
        await list.onEpochBegin(epoch);
        const average = new EpochAverage();
        const batches = source.epoch(this.#epochs++);
        let next = await batches.next();
        if (!next.done) coordinator.feed(lane, next.value);
        for (let index = 0; !next.done; index++) {
          const { size } = next.value;
          await list.onBatchBegin(index, { batch: index, size });
          const running = coordinator.step(lane, size, this.#scalars(), this.trace);
          // While the devices work, the next batch is made and handed over.
          const following = this.#prefetch(batches, lane);
          const result = await running;
          next = await following;
          this.#iteration++;
          this.lastStep = result;
          average.add(result.values, size);
          await list.onBatchEnd(index, { batch: index, size, ...toLogs(names, result.values) });
          if (this.#stopTraining()) break;
        }
        await batches.return();
        await coordinator.discardFeeds();
        const logs = toLogs(names, average.values);
        if (validation) Object.assign(logs, toLogs(names, await this.#evaluateSource(validation), "val_"));
        if (args.callbacks !== undefined) await coordinator.storeWeights();
        await list.onEpochEnd(epoch, logs);
        if (this.#stopTraining()) break;
      }
      await list.onTrainEnd();
    } finally {
      await coordinator.storeWeights();
    }
    return history;
  }

  /** Asks for the next batch and feeds it; an error waits until the present step is done. */
  #prefetch(batches: AsyncGenerator<HostBatch, void, void>, lane: Awaited<ReturnType<Coordinator["lane"]>>) {
    const following = batches.next().then((next) => {
      if (!next.done) this.#coordinator.feed(lane, next.value);
      return next;
    });
    following.catch(() => {});
    return following;
  }

  async #step(source: BatchSource): Promise<number[]> {
    const coordinator = this.#coordinator;
    const shape = this.#shape("train", source);
    coordinator.cut(shape);
    const lane = await this.#lane(shape);
    for await (const batch of source.epoch(0)) {
      coordinator.feed(lane, batch);
      this.lastStep = await coordinator.step(lane, batch.size, this.#scalars(), this.trace);
      this.#iteration++;
    }
    return this.lastStep!.values;
  }

  async #evaluate(source: BatchSource): Promise<number[]> {
    this.#requireCompiled();
    this.#checkSource(source);
    return await this.#evaluateSource(source);
  }

  async #evaluateSource(source: BatchSource): Promise<number[]> {
    const average = new EpochAverage();
    for await (const { values, size } of this.#inferences(source, "evaluate")) average.add(values, size);
    return average.values;
  }

  async *#inferences(
    source: BatchSource,
    mode: "evaluate" | "predict",
  ): AsyncGenerator<StepResult & { size: number }> {
    const lane = await this.#lane(this.#shape(mode, source));
    for await (const batch of source.epoch(0)) {
      this.#coordinator.feed(lane, batch);
      const result = await this.#coordinator.step(lane, batch.size, this.#scalars());
      yield { ...result, size: batch.size };
    }
  }

  /** Brings the stages up and opens a lane. */
  async #lane(shape: BatchShape) {
    const coordinator = this.#coordinator;
    await coordinator.start(this.#compiled, shape);
    if (this.#weights.stale) await coordinator.loadWeights();
    return await coordinator.lane(shape);
  }

  #shape(mode: BatchShape["mode"], { batchSize, inputs, targets }: BatchSource): BatchShape {
    return { mode, batchSize, inputs, targets: mode === "predict" ? [] : targets };
  }

  #scalars(): UpdateScalars {
    const learningRate = this.#args
      ? currentLearningRate(this.#args.optimizer, this.#compiled!.optimizer)
      : 0;
    return { learningRate, iteration: this.#iteration };
  }

  #epochOptions({ batchSize = 32, shuffle = true }: FitArgs) {
    return { batchSize, shuffle, seed: this.#options.seed };
  }

  async #source(
    data: tf.data.Dataset<tf.TensorContainer> | Samples,
    options: { batchSize: number; shuffle: boolean; seed: number },
    limit: number | undefined,
  ): Promise<BatchSource> {
    const source = isSamples(data)
      ? samplesSource(data, options)
      : await datasetSource(data, (kind, value) => this.#inModelOrder(kind, value as Data), limit);
    this.#checkSource(source);
    return source;
  }

  async #validationSource(
    data: NonNullable<FitArgs["validationData"]>,
    args: FitArgs,
    temporary: tf.Tensor[],
  ): Promise<BatchSource> {
    const options = { batchSize: args.batchSize ?? 32, shuffle: false, seed: 0 };
    if (isDataset(data) || isSamples(data)) return await this.#source(data, options, args.validationBatches);
    if (!Array.isArray(data) || data.length !== 2) {
      throw new TypeError("Cannot use validationData: expected [x, y], a dataset or samples");
    }
    return await tensorSource(...this.#standardize(data[0] as Data, data[1] as Data, temporary), options);
  }

  /** Inputs and targets in the model's order, of the ranks that it wants, as tfjs-layers' own `fit` checks them. */
  #standardize(x: Data, y: Data, temporary: tf.Tensor[]): [tf.Tensor[], tf.Tensor[]] {
    this.#requireCompiled();
    let standard: [tf.Tensor[], tf.Tensor[]];
    try {
      standard = internals(this.#model).standardizeUserDataXY(x, y, false);
    } catch (error) {
      const { message } = error as Error;
      throw new RangeError(`${message}; give data of the model's shapes, or build the model for these`, {
        cause: error,
      });
    }
    const given = new Set(
      [x, y].flatMap((data) => data instanceof tf.Tensor ? [data] : Object.values(data ?? {})),
    );
    temporary.push(...standard.flat().filter((t) => !given.has(t)));
    return standard;
  }

  /** Tensors in the model's order. */
  #inModelOrder(kind: "inputs" | "targets", data: Data): tf.Tensor[] {
    const names = this.#graph[kind === "inputs" ? "inputs" : "outputs"].map(({ name }) => name);
    const list = data instanceof tf.Tensor
      ? [data]
      : Array.isArray(data)
      ? data
      : names.map((name) => (data as Record<string, tf.Tensor>)[name]!);
    if (list.length !== names.length || list.some((t) => !(t instanceof tf.Tensor))) {
      throw new TypeError(
        `Cannot use ${list.length} ${kind}: the model has ${names.length} (${names.join(", ")})`,
      );
    }
    return list;
  }

  #checkSource({ inputs, targets }: BatchSource): void {
    this.#checkInputs(inputs);
    if (targets.length !== this.#graph.outputs.length) {
      throw new RangeError(
        `Cannot use ${targets.length} targets: the model has ${this.#graph.outputs.length} outputs`,
      );
    }
    const sparse = this.#sparseOutputs();
    targets.forEach(({ shape }, i) => {
      const output = this.#graph.outputs[i]!;
      const expected = sparse[i] ? [...output.shape.slice(1, -1), 1] : output.shape.slice(1);
      checkShape("target", output.name, shape, expected, sparse[i] ?? false);
    });
  }

  #checkInputs(inputs: readonly TensorSpec[]): void {
    this.#graph.inputs.forEach(({ name, shape }, i) =>
      checkShape("input", name, inputs[i]!.shape, shape.slice(1), false)
    );
  }

  /** Which outputs take class numbers as targets. */
  #sparseOutputs(): boolean[] {
    const { lossFunctions } = internals(this.#model);
    // A bundler may have added to the name.
    return lossFunctions.map((f) => f.name.startsWith("sparseCategoricalCrossentropy"));
  }

  #checkFitArgs(args: FitArgs): void {
    for (const [key, value] of Object.entries(args)) {
      if (value !== undefined && !FIT_ARGS.has(key)) {
        throw new TypeError(
          `Cannot use option "${key}" of fit: expected some of ${[...FIT_ARGS].join(", ")}`,
        );
      }
    }
    const { batchSize = 32, epochs = 1, initialEpoch = 0, validationSplit } = args;
    if (!Number.isInteger(batchSize) || batchSize < 1) {
      throw new RangeError(`Cannot use batchSize ${batchSize}: expected an integer >= 1`);
    }
    if (!Number.isInteger(epochs) || epochs < 1) {
      throw new RangeError(`Cannot use epochs ${epochs}: expected an integer >= 1`);
    }
    if (!Number.isInteger(initialEpoch) || initialEpoch < 0) {
      throw new RangeError(`Cannot use initialEpoch ${initialEpoch}: expected an integer >= 0`);
    }
    if (validationSplit !== undefined && !(validationSplit > 0 && validationSplit < 1)) {
      throw new RangeError(
        `Cannot use validationSplit ${validationSplit}: expected a number between 0 and 1`,
      );
    }
  }

  #requireCompiled(): void {
    if (!this.#compiled) throw new Error("Cannot train or evaluate: call compile({ optimizer, loss }) first");
  }

  /** Reads or sets the flag by which callbacks end training. */
  #stopTraining(value?: boolean): boolean {
    const models = [this.#model as unknown as { stopTraining: boolean }, internals(this.#model)];
    if (value !== undefined) { for (const model of models) model.stopTraining = value; }
    return models.some((model) =>
      model.stopTraining || (model as unknown as { stopTraining_: boolean }).stopTraining_
    );
  }

  /** One method at a time; tensors in `temporary` are disposed at its end. */
  async #exclusively<T>(what: string, body: (temporary: tf.Tensor[]) => Promise<T>): Promise<T> {
    if (this.#disposed) throw new Error(`Cannot ${what}: the trainer was disposed`);
    if (this.#busy) throw new Error(`Cannot ${what}: another call is under way; await it first`);
    this.#busy = true;
    const temporary: tf.Tensor[] = [];
    try {
      return await body(temporary);
    } finally {
      this.#busy = false;
      tf.dispose(temporary);
    }
  }
}

function isDataset(data: unknown): data is tf.data.Dataset<tf.TensorContainer> {
  return data instanceof tf.data.Dataset;
}

function isSamples(data: unknown): data is Samples {
  return typeof (data as Samples)?.read === "function" && typeof (data as Samples).length === "number";
}

function checkShape(
  kind: string,
  name: string,
  shape: readonly number[],
  expected: readonly (number | null)[],
  sparse: boolean,
): void {
  const fits = shape.length === expected.length &&
    shape.every((dim, i) => expected[i] === null || expected[i] === dim);
  if (fits) return;
  throw new RangeError(
    `Cannot use ${kind} "${name}" of shape [${shape}] per sample: expected [${expected}]` +
      `${sparse ? " (class numbers)" : ""}; give data of the model's shapes, or build the model for these`,
  );
}

/** The last share of the samples apart. */
function splitTensors(
  [x, y]: [tf.Tensor[], tf.Tensor[]],
  share: number,
  temporary: tf.Tensor[],
): [[tf.Tensor[], tf.Tensor[]], [Data, Data]] {
  const samples = x[0]!.shape[0]!;
  const at = Math.floor(samples * (1 - share));
  if (at < 1 || at >= samples) {
    throw new RangeError(
      `Cannot split ${samples} samples at validationSplit ${share}: one part would be empty`,
    );
  }
  const part = (from: number, count: number) => (t: tf.Tensor) => {
    const slice = tf.slice(t, from, count);
    temporary.push(slice);
    return slice;
  };
  const head = part(0, at);
  const tail = part(at, samples - at);
  return [[x.map(head), y.map(head)], [x.map(tail), y.map(tail)]];
}

function joinRows(parts: readonly { shape: readonly number[]; data: ArrayBuffer }[]): tf.Tensor {
  const rows = parts.reduce((sum, { shape }) => sum + shape[0]!, 0);
  const all = new Uint8Array(parts.reduce((sum, { data }) => sum + data.byteLength, 0));
  let at = 0;
  for (const { data } of parts) {
    all.set(new Uint8Array(data), at);
    at += data.byteLength;
  }
  return tf.tensor(new Float32Array(all.buffer), [rows, ...parts[0]!.shape.slice(1)]);
}

/** Functions in modules, replaced by stand-ins of their name: the caller's model does not run them. */
function localFunctions(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(localFunctions);
  const { module, name } = value as { module?: unknown; name?: unknown };
  if (typeof module === "string" && typeof name === "string") {
    const standIn: LossFunction = () => {
      throw new Error(`"${name}" runs in workers: use the trainer's methods`);
    };
    return Object.defineProperty(standIn, "name", { value: name });
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, localFunctions(item)]));
}

export type { DatasetElement, FunctionLike };
