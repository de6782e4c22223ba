/**
 * Runs a model's stages on workers: builds them, feeds them batches, lets them run steps, and brings weights
 * back. It knows nothing of epochs or callbacks.
 * @module
 */
import type { tf } from "../../deps.ts";
import { byteLengthOf } from "../../ring/dtype.ts";
import { createGroup, type GroupChannel } from "../../ring/group_channel.ts";
import type { Clipping } from "../../stages/clipping.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import type { PortableLosses } from "../../stages/losses.ts";
import { type OptimizerSpec, updateRule, type UpdateScalars } from "../../stages/optimizers.ts";
import { type Partition, resolvePartition } from "../../stages/partition.ts";
import { blockPartitions } from "../../stages/blocks.ts";
import { type StageConfig, stageConfigs } from "../../stages/stage_config.ts";
import type { StageMemory } from "../../stages/stage_memory.ts";
import { checkInteger } from "../checks.ts";
import {
  checkCuts,
  type Forecast,
  forecast,
  type ForecastArgs,
  splitSizesOf,
} from "../cost_model/forecast.ts";
import { choosePartition } from "./choose_partition.ts";
import { cannotStart, withWasm } from "../engines.ts";
import { isEngineFailure } from "../errors.ts";
import { createLane } from "./lanes.ts";
import { LeakCheck } from "./leak_check.ts";
import type { MeasuredTimes } from "../measure.ts";
import { fewestInFlight, memoryNeeded, refuseTooLarge } from "./memory_fit.ts";
import { type BatchShape, cutBatch, withBatch } from "./micro_batches.ts";
import type { ResolvedOptions } from "../options.ts";
import type { Prediction, StageCounters, TraceEvent, WorkerEngine } from "../protocol.ts";
import { profileModel } from "./profile_model.ts";
import { ReadyLane } from "./ready_lane.ts";
import { StageWorkers } from "./stage_workers.ts";
import type { WeightMemory } from "../weight_memory.ts";
import { Workloads } from "./workloads.ts";

/** Lanes kept open; as many programs are kept by a captured stage. */
const MAX_LANES = 16;

/** Loss, optimizer and clipping, as plain data. */
export interface CompiledSpec {
  readonly losses: PortableLosses;
  readonly optimizer: OptimizerSpec;
  readonly clipping: Clipping | undefined;
}

/** One step's outcome. */
export interface StepResult {
  /** Loss, the layers' penalties included while training, then metrics. */
  readonly values: number[];
  /** What each stage did when, if it was asked for. */
  readonly trace: readonly (readonly TraceEvent[])[];
  /** From the order to run to the last stage's end, in milliseconds. */
  readonly wallMs: number;
  /** Per output of the model, per micro-batch. */
  readonly predictions: readonly (readonly Prediction[])[];
}

/** How far bringing the stages up has come, for a progress display. */
export type ProgressReport = (phase: "start" | "partition" | "build" | "capture" | "measure") => void;

/** The stages of one model at work. */
export class Coordinator {
  readonly #workers = new StageWorkers();
  #workloads: Workloads;
  #options: ResolvedOptions;
  readonly #lanes = new Map<string, ReadyLane>();
  readonly #leaks = new LeakCheck();
  #stages: StageConfig[] = [];
  #compiled: CompiledSpec | undefined;
  #nextLane = 0;
  #partition: Partition | undefined;
  /** Whether the stages are those of the partition, with weights worth keeping. */
  #built = false;
  /** What computes, with its version. */
  engine: string;
  #engine: WorkerEngine;
  /** Longest time that a stage took to capture, in seconds. */
  captureSeconds = 0;

  constructor(
    readonly model: tf.LayersModel,
    readonly graph: ModelGraph,
    options: ResolvedOptions,
    readonly weights: WeightMemory,
    readonly progress: ProgressReport = () => {},
  ) {
    this.#options = options;
    this.engine = options.engine.name;
    this.#engine = options.engine;
    this.#workloads = new Workloads(model, graph, options);
  }

  /** What the stages were told. */
  get options(): ResolvedOptions {
    return this.#options;
  }

  /** Cuts the model anew at the next start, on the workers that are up. Optimizer slots begin anew. */
  async recut(options: ResolvedOptions): Promise<void> {
    await this.storeWeights();
    this.#options = options;
    this.#workloads = new Workloads(this.model, this.graph, options);
    this.#partition = undefined;
    this.#built = false;
  }

  /** Layers that begin each stage after the first. */
  get cutLayers(): string[] {
    return (this.#partition?.cuts ?? []).map((cut) => this.graph.layers[cut]!.name);
  }

  /**
   * Brings the stages up for a loss and an optimizer; does nothing if they are.
   *
   * @param shape what they will be fed, for a partition that is balanced by cost
   */
  async start(compiled: CompiledSpec | undefined, shape: BatchShape): Promise<void> {
    const ready = this.#workers.running && this.#built;
    if (ready && (compiled === undefined || compiled === this.#compiled)) return;
    await this.#bringUp(compiled);
    if (!this.#partition) {
      this.progress("partition");
      this.#partition = await choosePartition({
        workers: this.#workers,
        workloads: this.#workloads,
        shape,
        build: (partition) => this.#build(partition),
      });
    }
    this.progress("build");
    await this.#build(this.#partition);
    this.#built = true;
  }

  /**
   * What steps would take with other partitions and split sizes, predicted from a profile that is made now.
   *
   * @throws {RangeError} for a partition that cannot be run, or a batch that no device holds
   */
  async forecast(
    compiled: CompiledSpec,
    shape: BatchShape,
    { partitions, splitSizes = splitSizesOf(shape.batchSize) }: ForecastArgs,
  ): Promise<Forecast> {
    const { graph, options: { schedule, devices } } = this;
    const stages = devices.length;
    const ways = partitions?.map((cuts) => resolvePartition(graph, cuts, stages)) ??
      blockPartitions(graph, stages);
    const { batchSize } = shape;
    for (const size of splitSizes) checkInteger("splitSize", size, 1);
    const cuts = ways.flatMap((partition) => splitSizes.map((splitSize) => ({ partition, splitSize })));
    checkCuts(cuts);
    await this.#bringUp(compiled);
    this.progress("partition");
    this.#built = false; // each device gets all layers, with weights that nobody keeps
    const [whole] = await this.#build({ cuts: [] });
    const model = await profileModel({
      workers: this.#workers,
      workloads: this.#workloads,
      whole: whole!,
      shape,
    });
    return forecast(model, cuts, { batchSize, schedule });
  }

  /** Workers at work with the present weights, and no stages yet. */
  async #bringUp(compiled: CompiledSpec | undefined): Promise<void> {
    if (this.#workers.running) await this.storeWeights();
    else {
      this.#forget();
      await this.#workers.stop();
      this.progress("start");
      await this.#startWorkers();
      await this.weights.load();
    }
    this.#compiled = compiled ?? this.#compiled;
  }

  /** Starts the workers with the engine that was chosen, or with the one that takes its place. */
  async #startWorkers(): Promise<void> {
    const { options } = this;
    let started;
    try {
      started = await this.#workers.start(this.#engine, options);
    } catch (error) {
      const wanted = this.#engine;
      if (wanted.name !== "tensorflow" || !isEngineFailure(error)) throw error;
      await this.#workers.stop();
      const why = error.cause.message;
      if (!wanted.orElse) throw cannotStart(why, error);
      this.#engine = { name: wanted.orElse };
      options.notice(withWasm(why));
      started = await this.#workers.start(this.#engine, options);
    }
    this.engine = started.engine;
    started.notices.forEach((line) => options.notice(line));
  }

  /** A lane for batches of this shape, with its functions captured and its rings open. */
  async lane(shape: BatchShape): Promise<ReadyLane> {
    const key = JSON.stringify(shape);
    const known = this.#lanes.get(key);
    if (known) {
      this.#lanes.delete(key); // to the end: the order is that of use
      this.#lanes.set(key, known);
      return known;
    }
    const { microBatchSize, microBatches } = cutBatch(shape, this.options);
    const { times, memory } = await this.#capture(shape, microBatchSize, microBatches);
    const lane = new ReadyLane(
      { shape, microBatchSize, microBatches, stages: this.#stages, times, memory },
      this.#workloads,
    );
    refuseTooLarge({ memory, shape, options: this.options, schedule: (count) => lane.schedule(count) });
    const rings = createLane({
      id: this.#nextLane++,
      stages: this.#stages,
      mode: shape.mode,
      specs: this.#workloads.specs(shape, microBatchSize),
      targets: withBatch(shape.targets, microBatchSize),
      capacities: lane.capacities(),
      feedCapacity: 2 * microBatches, // the batch that runs and the next one
    });
    lane.open(rings, this.#workers.abort);
    await this.#workers.all((link, s) => link.call("openLane", rings.setups[s]!));
    this.#lanes.set(key, lane);
    await this.#closeIdle();
    return lane;
  }

  /**
   * Runs the next batch that was fed.
   *
   * @param size its samples
   * @throws {StageError} the first error of any stage
   */
  async step(lane: ReadyLane, size: number, scalars: UpdateScalars, trace = false): Promise<StepResult> {
    const command = lane.nextStep(size, scalars, trace);
    const start = performance.now();
    const reports = await this.#workers.run(command, () => this.#discard());
    const wallMs = performance.now() - start;
    const length = Math.max(1, ...reports.map(({ results }) => results.length));
    const values = Array.from({ length }, (_, i) => reports.reduce((sum, r) => sum + (r.results[i] ?? 0), 0));
    values[0]! += reports.reduce((sum, { penalty }) => sum + penalty, 0);
    const predictions: Prediction[][] = [];
    this.#stages.forEach(({ modelOutputs }, s) => {
      modelOutputs.forEach(({ output }, i) => predictions[output] = [...reports[s]!.predictions[i] ?? []]);
    });
    if (this.options.debug) {
      const names = this.options.devices.map(({ name }) => name);
      this.#leaks.after(`${JSON.stringify(lane.plan.shape)}/${size}`, await this.counters(), names);
    }
    return { values, trace: reports.map((r) => r.trace), wallMs, predictions };
  }

  /** Forgets batches that were fed and not run, as when training is stopped early. */
  async discardFeeds(): Promise<void> {
    if (![...this.#lanes.values()].some(({ waiting }) => waiting)) return;
    await this.#workers.all((link) => link.call("reset"));
    this.#discard();
  }

  /** Copies the weights of the stages into the caller's model. */
  async storeWeights(): Promise<void> {
    // A worker that died takes its stage's last weights along; the others' are saved.
    const replies = await this.#workers.each((link) =>
      this.#built ? link.call("storeWeights") : Promise.resolve()
    );
    if (!this.#built) return;
    this.weights.store();
    if (!this.#workers.broken) {
      const failed = replies.find((reply) => reply.status === "rejected");
      if (failed) throw failed.reason;
    }
  }

  /** Copies the caller's model's weights to the stages. */
  async loadWeights(): Promise<void> {
    if (!this.#workers.running) return;
    await this.weights.load();
    await this.#workers.all((link) => link.call("loadWeights"));
  }

  /** Bytes held from step to step: weights, accumulators, optimizer slots and rings. */
  get heldBytes(): number {
    const slots = this.#compiled ? updateRule(this.#compiled.optimizer).slots.length : 0;
    const weights = this.graph.layers.flatMap((layer) => layer.weights).reduce(
      (sum, w) => sum + byteLengthOf(w) * (w.trainable && this.#compiled ? 2 + slots : 1),
      0,
    );
    return [...this.#lanes.values()].reduce((sum, lane) => sum + lane.ringBytes, weights);
  }

  /** Counters of every stage. */
  async counters(): Promise<StageCounters[]> {
    return await this.#workers.all((link) => link.call("counters"));
  }

  /** Ends the workers for good. */
  async close(): Promise<void> {
    this.#forget();
    await this.#workers.close();
  }

  async #build(partition: Partition): Promise<readonly StageConfig[]> {
    this.#stages = stageConfigs(this.graph, partition, this.weights.layout);
    this.#lanes.clear();
    this.#leaks.reset();
    const { seed, capture } = this.options;
    const outputs = this.graph.outputs.map(({ name, shape }) => ({ name, shape }));
    const { losses, optimizer, clipping } = this.#compiled ?? {};
    const norms = clipping?.by === "norm" ? normsOf(this.#stages.length) : undefined;
    await this.#workers.all((link, s) =>
      link.call("build", {
        config: this.#stages[s] ?? this.#stages[0]!, // while layers are measured, each device has all of them
        outputs,
        losses,
        optimizer,
        clipping,
        norms,
        seed,
        capture,
        weights: this.weights.shared,
      })
    );
    return this.#stages;
  }

  /**
   * Captures the stages' functions.
   *
   * @returns what memory they take, and their times where a schedule is made from them
   * @throws {RangeError} if a stage's memory does not hold what is measured
   */
  async #capture(
    shape: BatchShape,
    size: number,
    microBatches: number,
  ): Promise<{ memory: readonly (StageMemory | undefined)[]; times: MeasuredTimes[] | undefined }> {
    const split = this.#workloads.splits(shape);
    const weightBatches = split ? this.#workloads.weightBatches(microBatches) : [];
    const workloads = this.#stages.map((stage) =>
      this.#workloads.of(stage, shape, size, { split, weightBatches })
    );
    this.progress("capture");
    const ready = await this.#workers.all((link, s) => link.call("prepare", [workloads[s]!]));
    this.captureSeconds = Math.max(this.captureSeconds, ...ready.map(({ seconds }) => seconds));
    ready.forEach(({ eager }, s) => {
      if (eager) this.options.notice(`Stage ${s} (${this.options.devices[s]!.name}) runs eagerly: ${eager}`);
    });
    const memory = await this.#workers.all((link, s) => link.call("memory", workloads[s]!));
    if (!split) return { memory, times: undefined };
    // Before it is measured; the schedule that is made from the times keeps as few in flight where memory is short.
    const { weightBatch } = this.options;
    const schedule = (count: number) => {
      const actions = fewestInFlight(count, weightBatch === "auto" ? 1 : Math.min(weightBatch, count));
      return this.#stages.map(() => actions);
    };
    refuseTooLarge({ memory, shape, options: this.options, schedule });
    this.progress("measure");
    const times = await this.#workers.all((link, s) => {
      const gradients = this.#workloads.outputGradients(this.#stages[s]!, shape, size);
      const held = memory[s];
      // So many are in flight at once while W of several is measured.
      const fitting = weightBatches.filter((count) =>
        !held || memoryNeeded(held, fewestInFlight(count, count), size) <= held.limit
      );
      return link.call("measure", { ...workloads[s]!, weightBatches: fitting }, gradients);
    });
    return { memory, times };
  }

  /** Closes the lanes used longest ago that are too many: each holds rings. */
  async #closeIdle(): Promise<void> {
    for (const [key, lane] of this.#lanes) {
      if (this.#lanes.size <= MAX_LANES) return;
      if (lane.waiting) continue;
      this.#lanes.delete(key);
      await this.#workers.all((link) => link.call("closeLane", lane.id));
    }
  }

  /** Forgets what the workers were told: they are ended. */
  #forget(): void {
    this.#built = false;
    this.#lanes.clear();
    this.#leaks.reset();
  }

  #discard(): void {
    for (const lane of this.#lanes.values()) lane.discard();
  }
}

/** What several stages tell each other the norms of their gradients by. */
function normsOf(stages: number): GroupChannel | undefined {
  if (stages === 1) return undefined;
  return createGroup({ size: stages, lengths: [stages], algorithm: "parameterServer", name: "norms" });
}
