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
import { replicaConfig, sumSlots } from "../../stages/replica_config.ts";
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
import { type BatchShape, cutBatch, shareOf, withBatch } from "./micro_batches.ts";
import type { ResolvedOptions } from "../options.ts";
import type { StageCounters, WorkerEngine } from "../protocol.ts";
import { profileModel } from "./profile_model.ts";
import { ReadyLane } from "./ready_lane.ts";
import { refuseApart } from "./refuse_apart.ts";
import { mergeReports, type StepResult } from "./step_result.ts";
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
  /** By which replicas add up, where there are several. */
  #sums: GroupChannel | undefined;
  #partition: Partition | undefined;
  /** Whether the stages are those of the partition, with weights worth keeping. */
  #built = false;
  /** Whether the last step failed. */
  #failed = false;
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
    const { options } = this;
    const { microBatchSize, microBatches } = cutBatch(shape, options);
    const shareSize = shareOf(microBatchSize, 0, options.replicas).count; // the largest
    const { times, memory } = await this.#capture(shape, shareSize, microBatches);
    const lane = new ReadyLane(
      { shape, microBatchSize, shareSize, microBatches, stages: this.#stages, times, memory },
      this.#workloads,
    );
    refuseTooLarge({ memory, shape, options, schedule: (count) => this.#onWorkers(lane.schedule(count)) });
    const common = {
      id: this.#nextLane++,
      stages: this.#stages,
      mode: shape.mode,
      specs: this.#workloads.specs(shape, shareSize),
      targets: withBatch(shape.targets, shareSize),
      capacities: lane.capacities,
      feedCapacity: 2 * microBatches, // the batch that runs and the next one
    };
    const rings = options.replicas === 1
      ? [createLane(common)]
      : Array.from({ length: options.replicas }, (_, replica) => createLane({ ...common, replica }));
    lane.open(rings, this.#workers.abort);
    const setups = rings.flatMap(({ setups }) => setups);
    await this.#workers.all((link, worker) => link.call("openLane", setups[worker]!));
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
    const reports = await this.#workers.run(command, () => {
      this.#failed = true;
      this.#discard();
    });
    const wallMs = performance.now() - start;
    if (this.options.debug) {
      const names = this.options.devices.map(({ name }) => name);
      this.#leaks.after(`${JSON.stringify(lane.plan.shape)}/${size}`, await this.counters(), names);
      if (lane.plan.shape.mode === "train" && this.options.replicas > 1) {
        refuseApart(await this.#workers.all((link) => link.call("weightChecks")), this.#stages);
      }
    }
    return mergeReports(reports, this.#stages, wallMs);
  }

  /** Forgets batches that were fed and not run, as when training is stopped early. */
  async discardFeeds(): Promise<void> {
    if (![...this.#lanes.values()].some(({ waiting }) => waiting)) return;
    await this.#workers.all((link) => link.call("reset"));
    this.#discard();
  }

  /** Copies the weights of the stages into the caller's model. */
  async storeWeights(): Promise<void> {
    // A worker that died takes its stage's last weights along; the others' are saved. Of replicas one is enough,
    // and with a dead one among them any other.
    const stages = this.#stages.length;
    const { broken } = this.#workers;
    const replies = await this.#workers.each((link, worker) =>
      this.#built && (broken || worker < stages) ? link.call("storeWeights") : Promise.resolve()
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
    this.#failed = false;
  }

  /** Whether a step failed and left replicas of which some may have been updated. */
  get apart(): boolean {
    return this.#failed && this.options.replicas > 1;
  }

  /** Bytes held from step to step: weights, accumulators, optimizer slots and rings; of all replicas. */
  get heldBytes(): number {
    const slots = this.#compiled ? updateRule(this.#compiled.optimizer).slots.length : 0;
    const weights = this.graph.layers.flatMap((layer) => layer.weights).reduce(
      (sum, w) => sum + byteLengthOf(w) * (w.trainable && this.#compiled ? 2 + slots : 1),
      0,
    );
    const { replicas } = this.options;
    const sums = this.#sums?.memory.buffer.byteLength ?? 0;
    return [...this.#lanes.values()].reduce((sum, lane) => sum + lane.ringBytes, replicas * weights + sums);
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
    const { seed, capture, replicas, allreduce, syncBatchNorm } = this.options;
    const { layout } = this.weights;
    if (replicas > 1) {
      // Op by op, a bucket by itself gains nothing.
      const bucketBytes = capture && this.#engine.name !== "wasm" ? this.options.bucketBytes : Infinity;
      const replica = replicaConfig(this.graph, layout, { bucketBytes, syncBatchNorm });
      const { lengths } = sumSlots(replica.segments!);
      this.#stages = [replica];
      this.#sums = createGroup({ size: replicas, lengths, algorithm: allreduce, name: "gradients" });
    } else this.#stages = stageConfigs(this.graph, partition, layout);
    this.#lanes.clear();
    this.#leaks.reset();
    const outputs = this.graph.outputs.map(({ name, shape }) => ({ name, shape }));
    const { losses, optimizer, clipping } = this.#compiled ?? {};
    const norms = clipping?.by === "norm" ? normsOf(this.#stages.length) : undefined;
    await this.#workers.all((link, s) =>
      link.call("build", {
        // Of a replica, the whole model; and while layers are measured, each device has all of them.
        config: this.#stages[s] ?? this.#stages[0]!,
        outputs,
        losses,
        optimizer,
        clipping,
        norms,
        replicas,
        sums: this.#sums,
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
    const workloads = this.#onWorkers(
      this.#stages.map((stage) => this.#workloads.of(stage, shape, size, { split, weightBatches })),
    );
    this.progress("capture");
    const ready = await this.#workers.all((link, s) => link.call("prepare", [workloads[s]!]));
    this.captureSeconds = Math.max(this.captureSeconds, ...ready.map(({ seconds }) => seconds));
    ready.forEach(({ eager }, s) => {
      if (!eager || s >= this.#stages.length) return; // replicas have the same to say
      const who = this.options.replicas > 1
        ? "Every replica"
        : `Stage ${s} (${this.options.devices[s]!.name})`;
      this.options.notice(`${who} runs eagerly: ${eager}`);
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

  /** What each worker has of what each stage has. */
  #onWorkers<T>(ofStages: readonly T[]): T[] {
    return Array.from({ length: this.options.replicas }, () => ofStages).flat();
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
