/** Trains a `tf.LayersModel` on several devices, with the methods of `tf.LayersModel`. @module */
import { tf } from "../../deps.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { localFunctions } from "../../stages/functions.ts";
import { portableLosses, withKnownNames } from "../../stages/losses.ts";
import { currentLearningRate, optimizerSpec, type UpdateScalars } from "../../stages/optimizers.ts";
import { internals } from "../../stages/tfjs.ts";
import { callbackList, EpochAverage, toLogs } from "./callbacks.ts";
import { type CompiledSpec, Coordinator, type ProgressReport } from "../coordinator/coordinator.ts";
import { planOf } from "../coordinator/lane_plan.ts";
import type { StepResult } from "../coordinator/step_result.ts";
import { type BatchSource, tensorSource } from "../data/batch_source.ts";
import type { Forecast, ForecastArgs } from "../cost_model/forecast.ts";
import { FeedAhead } from "./feed_ahead.ts";
import { joinRows } from "./join_rows.ts";
import { enableFileUrls } from "./file_io.ts";
import { type BatchShape, cutBatch } from "../coordinator/micro_batches.ts";
import {
  expectBatched,
  isBatched,
  lengthOf,
  ModelData,
  type ModelTensors,
  splitTensors,
} from "./model_data.ts";
import { checkKeys, shown } from "../checks.ts";
import { type Recut, recutOptions, type ResolvedOptions } from "../options.ts";
import type { Plan } from "../plan.ts";
import type { Prediction, StageCounters } from "../protocol.ts";
import type { ReadyLane } from "../coordinator/ready_lane.ts";
import {
  type BatchedData,
  checkEvaluateArgs,
  checkFitArgs,
  clippingOf,
  COMPILE_ARGS,
  type CompileArgs,
  type Data,
  type EvaluateArgs,
  type FitArgs,
} from "./trainer_args.ts";
import { shardingFor } from "./sharding.ts";
import { WeightMemory } from "../weight_memory.ts";

/** Called before a batch is run. */
type BeginBatch = (batch: number, size: number) => Promise<void>;

/** One batch, run. */
interface StepOfBatch {
  readonly batch: number;
  readonly size: number;
  readonly result: StepResult;
}

/** A model distributed over devices. Made by `distribute`. */
export class Trainer {
  readonly #model: tf.LayersModel;
  readonly #data: ModelData;
  readonly #graph: ModelGraph;
  readonly #coordinator: Coordinator;
  readonly #weights: WeightMemory;
  #args: CompileArgs | undefined;
  #compiled: CompiledSpec | undefined;
  #iteration = 0;
  #epochs = 0;
  /** The last way of training. */
  #planned: ReadyLane | undefined;
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
    this.#data = new ModelData(model, graph);
    this.#weights = new WeightMemory(model, graph);
    this.#coordinator = new Coordinator(model, graph, options, this.#weights, progress);
  }

  /** The caller's model: it holds the trained weights after `fit`, and whenever a callback is called at an epoch's end. */
  get model(): tf.LayersModel {
    return this.#model;
  }

  /** Strategy, devices and all else that was chosen. */
  get options(): ResolvedOptions {
    return this.#coordinator.options;
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

  /**
   * What runs on which device, and which tensors go from which stage to which, for the data that was trained on last
   * or that `prepare` was given. `formatPlan` makes text of it.
   */
  get plan(): Plan {
    if (!this.#planned) {
      throw new Error("Cannot show the plan before the stages are up: call prepare(data) first");
    }
    return planOf(this.#planned);
  }

  /** Names of what `fit` and `evaluate` report. */
  get metricsNames(): string[] {
    this.#requireCompiled();
    return internals(this.#model).getDedupedMetricsNames();
  }

  /**
   * Sets optimizer, loss and metrics, and how gradients are clipped.
   *
   * @throws {TypeError|RangeError} for one that Stagger or tfjs-layers does not know
   */
  compile(args: CompileArgs): void {
    if (!args?.optimizer || !args.loss) {
      throw new TypeError(`Cannot compile with ${shown(args)}: expected { optimizer, loss, metrics }`);
    }
    checkKeys("compile", args, COMPILE_ARGS);
    const optimizer = optimizerSpec(args.optimizer);
    const losses = portableLosses(args);
    const clipping = clippingOf(args);
    // The caller's model is compiled too: tfjs-layers checks the names, and its own methods go on working.
    try {
      this.#model.compile({
        optimizer: args.optimizer instanceof tf.Optimizer ? args.optimizer : "sgd",
        loss: localFunctions(args.loss) as never,
        metrics: localFunctions(args.metrics) as never,
      });
    } catch (error) {
      throw withKnownNames(error);
    }
    this.#args = args;
    this.#compiled = { optimizer, losses, clipping };
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
  async fit(data: BatchedData, args?: FitArgs): Promise<tf.History>;
  async fit(x: Data | BatchedData, y?: Data | FitArgs, more?: FitArgs): Promise<tf.History> {
    const args = (isBatched(x) ? y as FitArgs | undefined : more) ?? {};
    checkFitArgs(args);
    return await this.#exclusively("fit", async (temporary) => {
      this.#requireCompiled();
      const { batchSize = 32, shuffle = true } = args;
      const options = { batchSize, shuffle, seed: this.options.seed, accumulate: this.options.accumulate };
      let source: BatchSource;
      let validation: BatchSource | undefined;
      if (args.validationData !== undefined) {
        validation = await this.#data.validation(args.validationData, args, temporary, "validationData");
      }
      if (isBatched(x)) {
        if (args.validationSplit !== undefined) {
          throw new TypeError(
            `Cannot use validationSplit ${args.validationSplit} with a dataset or samples: give validationData`,
          );
        }
        const sharding = shardingFor(batchSize, lengthOf(x), this.options);
        source = await this.#data.batched(x, { ...options, sharding }, args.batchesPerEpoch);
      } else {
        let trained = this.#data.standardize(x, y as Data, temporary);
        if (args.validationSplit !== undefined && !validation) {
          let kept: ModelTensors;
          [trained, kept] = splitTensors(trained, args.validationSplit, temporary);
          validation = await tensorSource(...kept, { ...options, shuffle: false, accumulate: 1 });
        }
        const sharding = shardingFor(batchSize, trained[0][0]!.shape[0]!, this.options);
        source = await tensorSource(...trained, { ...options, sharding });
      }
      return await this.#fit(source, validation, args);
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
  async prepare(data: BatchedData, { batchSize = 32 }: Pick<FitArgs, "batchSize"> = {}): Promise<void> {
    expectBatched("prepare", data);
    await this.#exclusively("prepare", async () => {
      this.#requireCompiled();
      const { accumulate } = this.options;
      const sharding = shardingFor(batchSize, lengthOf(data), this.options);
      const options = { batchSize, shuffle: false, seed: 0, accumulate, sharding };
      const source = await this.#data.batched(data, options);
      await this.#trainingLane(source);
    });
  }

  /**
   * Predicts what a step takes with other partitions and split sizes, from one profile of the layers on this trainer's
   * devices: a table in place of trying them by hand. The stages are brought up anew afterwards.
   *
   * @throws {TypeError|RangeError} for a partition or a split size that cannot be
   */
  async forecast(data: BatchedData, args: ForecastArgs = {}): Promise<Forecast> {
    const { batchSize = 32 } = args;
    expectBatched("forecast", data);
    const { strategy } = this.options;
    if (strategy !== "pipeline" && strategy !== "modelParallel") {
      throw new TypeError(
        `Cannot forecast with strategy "${strategy}": expected "pipeline" or "modelParallel", which cut the model`,
      );
    }
    return await this.#exclusively("forecast", async () => {
      this.#requireCompiled();
      const source = await this.#data.batched(data, { batchSize, shuffle: false, seed: 0 });
      return await this.#coordinator.forecast(this.#compiled!, this.#shape("train", source), args);
    });
  }

  /**
   * Trains step by step, for loops of one's own: each `next()` runs one step, epoch after epoch without end.
   * The next batch is made while a step runs.
   */
  async *steps(
    data: BatchedData,
    { batchSize = 32, shuffle = true }: Pick<FitArgs, "batchSize" | "shuffle"> = {},
  ): AsyncGenerator<StepResult, void, void> {
    this.#requireCompiled();
    expectBatched("steps", data);
    const { seed, accumulate } = this.options;
    const sharding = shardingFor(batchSize, lengthOf(data), this.options);
    const source = await this.#data.batched(data, { batchSize, shuffle, seed, accumulate, sharding });
    const lane = await this.#trainingLane(source);
    for (;;) {
      for await (const { result } of this.#epoch(source, lane, this.#epochs++)) yield result;
    }
  }

  /** One step on one batch, whatever `accumulate` is. @returns loss and metrics, the loss alone without metrics */
  async trainOnBatch(x: Data, y: Data): Promise<number | number[]> {
    return await this.#exclusively("trainOnBatch", async (temporary) => {
      this.#requireCompiled();
      const tensors = this.#data.standardize(x, y, temporary);
      const batchSize = tensors[0][0]!.shape[0]!;
      const source = await tensorSource(...tensors, { batchSize, shuffle: false, seed: 0 });
      const lane = await this.#trainingLane(source);
      let values: number[] = [];
      for await (const { result } of this.#epoch(source, lane, 0)) values = result.values;
      return values.length === 1 ? values[0]! : values;
    });
  }

  /** Loss and metrics on data, without training. */
  async evaluate(x: Data, y: Data, args?: EvaluateArgs): Promise<tf.Scalar | tf.Scalar[]>;
  /** Loss and metrics on batches that a dataset or samples make. */
  async evaluate(data: BatchedData, args?: EvaluateArgs): Promise<tf.Scalar | tf.Scalar[]>;
  async evaluate(
    x: Data | BatchedData,
    y?: Data | EvaluateArgs,
    more?: EvaluateArgs,
  ): Promise<tf.Scalar | tf.Scalar[]> {
    const args = (isBatched(x) ? y as EvaluateArgs | undefined : more) ?? {};
    checkEvaluateArgs("evaluate", args);
    return await this.#exclusively("evaluate", async (temporary) => {
      this.#requireCompiled();
      const source = await this.#data.validation(
        isBatched(x) ? x : [x, y as Data],
        args,
        temporary,
        "evaluate",
      );
      const scalars = (await this.#evaluate(source)).map((value) => tf.scalar(value));
      return scalars.length === 1 ? scalars[0]! : scalars;
    });
  }

  /** The model's outputs for inputs, batch axis first. */
  async predict(x: Data, args: EvaluateArgs = {}): Promise<tf.Tensor | tf.Tensor[]> {
    checkEvaluateArgs("predict", args);
    return await this.#exclusively("predict", async () => {
      const source = await this.#data.inputs(x, args.batchSize ?? 32);
      const parts: Prediction[][] = this.#graph.outputs.map(() => []);
      for await (const { result } of this.#inferences(source, "predict")) {
        result.predictions.forEach((list, output) => parts[output]!.push(...list));
      }
      const outputs = parts.map(joinRows);
      return outputs.length === 1 ? outputs[0]! : outputs;
    });
  }

  /**
   * Cuts the model or its batches in another way, on the workers that are up: to try partitions, say. Weights stay;
   * the optimizer's slots, such as momentum, begin anew.
   *
   * @throws {TypeError|RangeError} for what does not fit
   */
  async repartition(recut: Recut): Promise<void> {
    await this.#exclusively("repartition", async () => {
      await this.#coordinator.recut(recutOptions(this.options, this.#graph, recut));
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

  /**
   * Ends the workers, which keep the process alive until then; the caller's model keeps the trained weights. A `fit`
   * that is under way fails after the present step.
   */
  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    try {
      await this.#coordinator.storeWeights();
    } finally {
      await this.#coordinator.close();
    }
  }

  /** As `dispose`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  async #fit(source: BatchSource, validation: BatchSource | undefined, args: FitArgs): Promise<tf.History> {
    const { epochs = 1, initialEpoch = 0 } = args;
    const names = this.metricsNames;
    const { list, history } = callbackList(args.callbacks, args.yieldEvery, this.#model, {
      epochs,
      initialEpoch,
      samples: source.samples,
      steps: source.batches,
      batchSize: source.batchSize,
      doValidation: validation !== undefined,
      metrics: validation ? [...names, ...names.map((name) => `val_${name}`)] : names,
    });
    await this.#trainingLane(source);
    this.#stopTraining(false);
    try {
      await this.#between(() => list.onTrainBegin());
      for (let epoch = initialEpoch; epoch < epochs && !this.#stopTraining(); epoch++) {
        await this.#between(() => list.onEpochBegin(epoch));
        const average = new EpochAverage();
        // Asked for anew: callbacks between epochs may have used the stages for other shapes.
        const lane = await this.#trainingLane(source);
        // Another order in every epoch: of this run, and of one that an earlier trainer began.
        const order = Math.max(this.#epochs, epoch);
        this.#epochs = order + 1;
        const begin = (batch: number, size: number) => list.onBatchBegin(batch, { batch, size });
        for await (const { batch, size, result } of this.#epoch(source, lane, order, begin)) {
          average.add(result.values, size);
          await list.onBatchEnd(batch, { batch, size, ...toLogs(names, result.values) });
          if (this.#stopTraining()) break;
        }
        const logs = toLogs(names, average.values);
        if (validation) Object.assign(logs, toLogs(names, await this.#evaluate(validation), "val_"));
        if (args.callbacks !== undefined) await this.#coordinator.storeWeights();
        await this.#between(() => list.onEpochEnd(epoch, logs));
      }
      await this.#between(() => list.onTrainEnd());
    } finally {
      await this.#coordinator.storeWeights();
    }
    return history;
  }

  /** Trains on the batches of one epoch. */
  async *#epoch(
    source: BatchSource,
    lane: ReadyLane,
    index: number,
    begin?: BeginBatch,
  ): AsyncGenerator<StepOfBatch, void, void> {
    for await (const step of this.#batches(source.epoch(index), lane, { begin, trace: this.trace })) {
      this.#iteration++;
      this.lastStep = step.result;
      yield step;
    }
  }

  async #evaluate(source: BatchSource): Promise<number[]> {
    const average = new EpochAverage();
    for await (const { result, size } of this.#inferences(source, "evaluate")) {
      average.add(result.values, size);
    }
    return average.values;
  }

  async *#inferences(
    source: BatchSource,
    mode: "evaluate" | "predict",
  ): AsyncGenerator<StepOfBatch, void, void> {
    const lane = await this.#lane(this.#shape(mode, source));
    yield* this.#batches(source.epoch(0), lane);
  }

  /** Runs batches, each fed while the one before runs. Left early, it forgets what was fed. */
  async *#batches(
    batches: ReturnType<BatchSource["epoch"]>,
    lane: ReadyLane,
    { begin, trace = false }: { begin?: BeginBatch | undefined; trace?: boolean } = {},
  ): AsyncGenerator<StepOfBatch, void, void> {
    const feed = new FeedAhead(batches, lane);
    try {
      for (let batch = 0;; batch++) {
        const size = await feed.next();
        if (size === undefined) return;
        await begin?.(batch, size);
        const running = this.#coordinator.step(lane, size, this.#scalars(), trace);
        feed.advance();
        yield { batch, size, result: await running };
      }
    } finally {
      await feed.close();
      await this.#coordinator.discardFeeds();
    }
  }

  async #trainingLane(source: BatchSource): Promise<ReadyLane> {
    const shape = this.#shape("train", source);
    cutBatch(shape, this.options); // before workers start
    return this.#planned = await this.#lane(shape);
  }

  /** Brings the stages up and opens a lane. */
  async #lane(shape: BatchShape): Promise<ReadyLane> {
    const coordinator = this.#coordinator;
    await coordinator.start(this.#compiled, shape);
    if (this.#weights.stale || coordinator.apart) await coordinator.loadWeights();
    return await coordinator.lane(shape);
  }

  #shape(mode: BatchShape["mode"], { batchSize, joined, inputs, targets }: BatchSource): BatchShape {
    return { mode, batchSize, joined, inputs, targets: mode === "predict" ? [] : targets };
  }

  #scalars(): UpdateScalars {
    const learningRate = this.#args
      ? currentLearningRate(this.#args.optimizer, this.#compiled!.optimizer)
      : 0;
    return { learningRate, iteration: this.#iteration };
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

  /** Callbacks between epochs, when no batch is under way, may call the trainer. */
  async #between(callback: () => Promise<void>): Promise<void> {
    this.#busy = false;
    try {
      await callback();
    } finally {
      this.#busy = true;
    }
  }

  /** One method at a time; tensors in `temporary` are disposed at its end. */
  async #exclusively<T>(what: string, body: (temporary: tf.Tensor[]) => Promise<T>): Promise<T> {
    if (this.#disposed) throw new Error(`Cannot ${what}: the trainer was disposed`);
    if (this.#busy) {
      throw new Error(
        `Cannot ${what}: another call is under way; await it first (callbacks at the beginning and the end of an ` +
          `epoch may evaluate, predict and train)`,
      );
    }
    this.#busy = true;
    const temporary: tf.Tensor[] = [];
    try {
      return await body(temporary);
    } catch (error) {
      if (!this.#disposed) throw error;
      throw new Error(`Cannot go on with ${what}: the trainer was disposed`, { cause: error });
    } finally {
      this.#busy = false;
      tf.dispose(temporary);
    }
  }
}
