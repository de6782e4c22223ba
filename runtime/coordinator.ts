/**
 * Runs a model's stages on workers: builds them, feeds them batches, lets them run steps, and brings weights
 * back. It knows nothing of epochs or callbacks.
 * @module
 */
import type { tf } from "../deps.ts";
import { AbortFlag } from "../ring/abort.ts";
import { byteLengthOf, type TensorSpec } from "../ring/dtype.ts";
import { RingSender } from "../ring/ring.ts";
import type { MicroBatch, Workload } from "../stages/executor.ts";
import { inferShapes, type ModelGraph, refKey } from "../stages/graph.ts";
import { type LayerCost, totalCost } from "../stages/balance.ts";
import type { PortableLosses } from "../stages/losses.ts";
import { type OptimizerSpec, updateRule, type UpdateScalars } from "../stages/optimizers.ts";
import { type Partition, resolvePartition } from "../stages/partition.ts";
import { type StageConfig, stageConfigs } from "../stages/stage_config.ts";
import { balancePartition, refinePartition } from "./auto_partition.ts";
import type { HostBatch } from "./data/batch_source.ts";
import { StageError } from "./errors.ts";
import { createLane, type LaneRings, stageWorkload } from "./lanes.ts";
import type { MeasuredTimes } from "./measure.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Reply, StageCounters, StepCommand, StepReport, TraceEvent } from "./protocol.ts";
import { action, type Schedule } from "./schedules/action.ts";
import { capacitiesFor, makeSchedule } from "./schedules/schedules.ts";
import { validate } from "./schedules/validate.ts";
import { chooseWeightBatch, timesFor } from "./schedules/weight_batch.ts";
import type { WeightMemory } from "./weight_memory.ts";
import { WorkerLink } from "./worker_link.ts";

/** Loss and optimizer, as plain data. */
export interface CompiledSpec {
  readonly losses: PortableLosses;
  readonly optimizer: OptimizerSpec;
}

/** One step's outcome. */
export interface StepResult {
  /** Loss, the layers' penalties included while training, then metrics. */
  readonly values: number[];
  /** What each stage did when, if it was asked for. */
  readonly trace: readonly (readonly TraceEvent[])[];
  /** From the order to run to the last stage's end, in milliseconds. */
  readonly wallMs: number;
  /** Per output of the model, per micro-batch: shape and bytes. */
  readonly predictions: readonly (readonly { shape: readonly number[]; data: ArrayBuffer }[])[];
}

/** What a batch of a source looks like. */
export interface BatchShape {
  readonly mode: Workload["mode"];
  /** Samples in the largest batch. */
  readonly batchSize: number;
  /** Without the batch axis. */
  readonly inputs: readonly TensorSpec[];
  readonly targets: readonly TensorSpec[];
}

/** How far bringing the stages up has come, for a progress display. */
export type ProgressReport = (phase: "start" | "partition" | "build" | "capture" | "measure") => void;

/** Milliseconds to wait, after a failure, for the other stages to stop. */
const SETTLE_MS = 500;
/** Numbers of micro-batches that a batched W is tried with. */
const WEIGHT_BATCHES = [2, 4];

/** One way of running, ready to be fed. */
export interface ReadyLane {
  readonly shape: BatchShape;
  readonly microBatchSize: number;
  readonly microBatches: number;
  readonly rings: LaneRings;
  readonly senders: readonly RingSender[];
  readonly times: readonly MeasuredTimes[] | undefined;
  readonly weightBatch: readonly number[];
  readonly schedules: Map<number, Schedule>;
  readonly workloads: Map<string, Workload>;
  /** Steps fed and run so far: messages carry this number. */
  fed: number;
  run: number;
}

/** The stages of one model at work. */
export class Coordinator {
  readonly #abort = new AbortFlag();
  readonly #lanes = new Map<string, ReadyLane>();
  #links: WorkerLink[] = [];
  #stages: StageConfig[] = [];
  #settling: Promise<unknown> = Promise.resolve();
  #compiled: CompiledSpec | undefined;
  #nextLane = 0;
  #broken = false;
  /** Whether the stages are those of the partition, with weights worth keeping. */
  #built = false;
  partition: Partition | undefined;
  /** What computes, with its version. */
  engine: string;
  /** Longest time that a stage took to capture, in seconds. */
  captureSeconds = 0;

  constructor(
    readonly model: tf.LayersModel,
    readonly graph: ModelGraph,
    readonly options: ResolvedOptions,
    readonly weights: WeightMemory,
    readonly progress: ProgressReport = () => {},
  ) {
    this.engine = options.engine.name;
  }

  /** Whether workers are up. */
  get running(): boolean {
    return this.#links.length > 0 && !this.#broken;
  }

  /** Layers that begin each stage after the first. */
  get cutLayers(): string[] {
    return (this.partition?.cuts ?? []).map((cut) => this.graph.layers[cut]!.name);
  }

  /**
   * Brings the stages up for a loss and an optimizer; does nothing if they are.
   *
   * @param shape what they will be fed, for a partition that is balanced by cost
   */
  async start(compiled: CompiledSpec | undefined, shape: BatchShape): Promise<void> {
    if (this.running && (compiled === undefined || compiled === this.#compiled)) return;
    if (!this.running) {
      await this.stop();
      this.progress("start");
      this.#links = this.options.devices.map((device, stage) =>
        new WorkerLink(stage, device.name, () => {
          this.#broken = true;
          this.#abort.raise(stage);
        })
      );
      this.#broken = false;
      this.#abort.clear();
      const { engine, modules, devices } = this.options;
      const started = await this.#all((link, stage) =>
        link.call("start", { stage, device: devices[stage]!, engine, modules, abort: this.#abort.shared })
      );
      this.engine = started[0]!.engine;
      await this.weights.load();
    } else await this.storeWeights();
    this.#compiled = compiled;
    this.partition ??= await this.#choosePartition(shape);
    this.progress("build");
    await this.#build(this.partition);
    this.#built = true;
  }

  /** A lane for batches of this shape, with its functions captured and its rings open. */
  async lane(shape: BatchShape): Promise<ReadyLane> {
    const key = JSON.stringify(shape);
    const known = this.#lanes.get(key);
    if (known) return known;
    const { microBatchSize, microBatches } = this.cut(shape);
    const training = shape.mode === "train";
    const wantsSplit = this.#splits(shape);
    const workloadsOf = (weightBatches: readonly number[]) =>
      this.#stages.map((stage) => this.#workload(stage, shape, microBatchSize, wantsSplit, weightBatches));
    this.progress("capture");
    const tried = wantsSplit ? this.#weightBatches(microBatches) : [];
    const workloads = workloadsOf(tried);
    const ready = await this.#all((link, s) => link.call("prepare", [workloads[s]!]));
    this.captureSeconds = Math.max(this.captureSeconds, ...ready.map(({ seconds }) => seconds));
    ready.forEach(({ eager }, s) => {
      if (eager) this.options.notice(`Stage ${s} (${this.options.devices[s]!.name}) runs eagerly: ${eager}`);
    });
    let times: MeasuredTimes[] | undefined;
    if (wantsSplit) {
      this.progress("measure");
      times = await this.#all((link, s) =>
        link.call("measure", workloads[s]!, this.#outputGradients(s, shape, microBatchSize))
      );
    }
    const weightBatch = this.#chooseWeightBatch(times, microBatches);
    const lane: ReadyLane = {
      shape,
      microBatchSize,
      microBatches,
      rings: { id: 0, setups: [], feeds: [] },
      senders: [],
      times,
      weightBatch,
      schedules: new Map(),
      workloads: new Map(),
      fed: 0,
      run: 0,
    };
    const schedule = this.#schedule(lane, microBatches);
    const capacities = training
      ? capacitiesFor(schedule, microBatches, lane.times)
      : { activations: this.#stages.map(() => 2), gradients: this.#stages.map(() => 0) };
    if (training) validate(schedule, microBatches, capacities);
    const rings = createLane({
      id: this.#nextLane++,
      stages: this.#stages,
      mode: shape.mode,
      specs: this.#specs(shape, microBatchSize),
      targets: withBatch(shape.targets, microBatchSize),
      capacities,
      feedCapacity: 2 * microBatches, // the batch that runs and the next one
    });
    const senders = rings.feeds.map(({ channel }) => new RingSender(channel, this.#abort));
    await this.#all((link, s) => link.call("openLane", rings.setups[s]!));
    const open = Object.assign(lane, { rings, senders });
    this.#lanes.set(key, open);
    return open;
  }

  /** How a batch is cut into micro-batches: sizes as `torch.chunk`'s, the last one smaller. */
  cut(
    { batchSize, mode }: Pick<BatchShape, "batchSize" | "mode">,
  ): { microBatchSize: number; microBatches: number } {
    const { microBatches, splitSize } = this.options;
    if (splitSize === undefined && mode === "train" && batchSize < microBatches) {
      throw new RangeError(
        `Cannot cut a batch of ${batchSize} into ${microBatches} micro-batches: expected batchSize >= microBatches; ` +
          `use a larger batch or fewer micro-batches`,
      );
    }
    const microBatchSize = Math.min(batchSize, splitSize ?? Math.ceil(batchSize / microBatches));
    return { microBatchSize, microBatches: Math.ceil(batchSize / microBatchSize) };
  }

  /** Hands a batch to the stages; at most one beyond the batch that runs. */
  feed(lane: ReadyLane, batch: HostBatch): void {
    const step = lane.fed++;
    for (const microBatch of microBatchesOf(batch.size, lane.microBatchSize, step)) {
      lane.rings.feeds.forEach(({ kind, index }, i) => {
        const tensor = kind === "input" ? batch.inputs[index]! : batch.targets[index]!;
        const sender = lane.senders[i]!;
        if (sender.free === 0) {
          throw new Error(`Ring "${sender.channel.name}" is full: a batch too many was fed`);
        }
        const { index: place, firstSample, size } = microBatch;
        const shape = [size, ...tensor.spec.shape];
        const key = { step, microBatch: place, tensor: sender.channel.tensor };
        sender.send({ ...key, shape, dtype: tensor.spec.dtype }, (payload) => {
          tensor.copyRows(firstSample, size, payload);
        });
      });
    }
  }

  /**
   * Runs the next batch that was fed.
   *
   * @param size its samples
   * @throws {StageError} the first error of any stage
   */
  async step(lane: ReadyLane, size: number, scalars: UpdateScalars, trace = false): Promise<StepResult> {
    const step = lane.run++;
    const microBatches = microBatchesOf(size, lane.microBatchSize, step);
    const training = lane.shape.mode === "train";
    const schedule = training ? this.#schedule(lane, microBatches.length) : undefined;
    const forwards = microBatches.map(({ index }) => action("F", index));
    const start = performance.now();
    const reports = await this.#run((stage): StepCommand => ({
      lane: lane.rings.id,
      step,
      actions: schedule?.[stage] ?? forwards,
      microBatches,
      workloads: microBatches.map((m) => this.#laneWorkload(lane, stage, m.size)),
      scalars,
      trace,
    }));
    const wallMs = performance.now() - start;
    const length = Math.max(1, ...reports.map(({ results }) => results.length));
    const values = Array.from({ length }, (_, i) => reports.reduce((sum, r) => sum + (r.results[i] ?? 0), 0));
    values[0]! += reports.reduce((sum, { penalty }) => sum + penalty, 0);
    const predictions: { shape: readonly number[]; data: ArrayBuffer }[][] = [];
    this.#stages.forEach(({ modelOutputs }, s) => {
      modelOutputs.forEach(({ output }, i) => predictions[output] = [...reports[s]!.predictions[i] ?? []]);
    });
    return { values, trace: reports.map((r) => r.trace), wallMs, predictions };
  }

  /** Forgets batches that were fed and not run, as when training is stopped early. */
  async discardFeeds(): Promise<void> {
    if (![...this.#lanes.values()].some(({ fed, run }) => fed !== run)) return;
    await this.#all((link) => link.call("reset"));
    for (const lane of this.#lanes.values()) lane.run = lane.fed;
  }

  /** Copies the weights of the stages into the caller's model. */
  async storeWeights(): Promise<void> {
    await this.#settling;
    if (!this.#built) return;
    // A worker that died takes its stage's last weights along; the others' are saved.
    const replies = await Promise.allSettled(this.#links.map((link) => link.call("storeWeights")));
    this.weights.store();
    if (!this.#broken) {
      const failed = replies.find((reply) => reply.status === "rejected");
      if (failed) throw failed.reason;
    }
  }

  /** Copies the caller's model's weights to the stages. */
  async loadWeights(): Promise<void> {
    if (!this.running) return;
    await this.weights.load();
    await this.#all((link) => link.call("loadWeights"));
  }

  /** Bytes held from step to step: weights, accumulators, optimizer slots and rings. */
  get heldBytes(): number {
    const slots = this.#compiled ? updateRule(this.#compiled.optimizer).slots.length : 0;
    const weights = this.graph.layers.flatMap((layer) => layer.weights).reduce(
      (sum, w) => sum + byteLengthOf(w) * (w.trainable && this.#compiled ? 2 + slots : 1),
      0,
    );
    const rings = new Set(
      [...this.#lanes.values()].flatMap(({ rings }) =>
        rings.setups.flatMap((
          s,
        ) => [...s.inputs, ...s.targets, ...s.outputs, ...s.outputGradients, ...s.inputGradients])
      ),
    );
    return [...rings].reduce((sum, { memory }) => sum + memory.buffer.byteLength, weights);
  }

  /** Counters of every stage. */
  async counters(): Promise<StageCounters[]> {
    return await this.#all((link) => link.call("counters"));
  }

  /** Ends the workers. */
  async stop(): Promise<void> {
    const links = this.#links;
    this.#links = [];
    this.#built = false;
    this.#lanes.clear();
    if (!this.#broken) await Promise.allSettled(links.map((link) => link.ask("dispose")));
    for (const link of links) link.terminate();
  }

  async #build(partition: Partition): Promise<void> {
    this.#stages = stageConfigs(this.graph, partition, this.weights.layout);
    this.#lanes.clear();
    const { seed, capture } = this.options;
    const outputs = this.graph.outputs.map(({ name, shape }) => ({ name, shape }));
    await this.#all((link, s) =>
      link.call("build", {
        config: this.#stages[s] ?? this.#stages[0]!, // while layers are measured, each device has all of them
        outputs,
        losses: this.#compiled?.losses,
        optimizer: this.#compiled?.optimizer,
        seed,
        capture,
        weights: this.weights.shared,
      })
    );
  }

  async #choosePartition(shape: BatchShape): Promise<Partition> {
    const { partition, devices } = this.options;
    if (devices.length === 1) return { cuts: [] };
    if (partition !== "auto") return resolvePartition(this.graph, partition, devices.length);
    this.progress("partition");
    const { microBatchSize } = this.cut(shape);
    const specs = this.#specs(shape, microBatchSize);
    const request = { graph: this.graph, stages: devices.length, specs };
    if (this.options.costs === "estimated") return balancePartition(request);
    const measured = await this.#profile(shape, microBatchSize);
    return await refinePartition({ ...request, measured }, async (partition) => {
      await this.#build(partition);
      const split = this.#splits({ ...shape, mode: "train" });
      const times = await this.#all((link, s) => {
        const workload = this.#workload(
          this.#stages[s]!,
          { ...shape, mode: "train" },
          microBatchSize,
          split,
          [],
        );
        return link.call("measure", workload, this.#outputGradients(s, shape, microBatchSize));
      });
      return times.map(totalCost);
    });
  }

  /** Whether W runs apart from B. */
  #splits({ mode }: Pick<BatchShape, "mode">): boolean {
    return mode === "train" && this.options.schedule === "zero-bubble" && this.options.devices.length > 1;
  }

  /** Measures every layer on every device at once, as when the stages are at work: the median of the devices. */
  async #profile(shape: BatchShape, size: number): Promise<Record<string, LayerCost>> {
    await this.#build({ cuts: [] });
    const workload = this.#workload(this.#stages[0]!, { ...shape, mode: "train" }, size, true, []);
    const profiles = await this.#all((link) => link.call("profile", workload, []));
    const median = (layer: string, part: keyof LayerCost) => {
      const all = profiles.map(({ costs }) => costs[layer]?.[part] ?? 0).sort((a, b) => a - b);
      return all[all.length >> 1]!;
    };
    return Object.fromEntries(this.graph.layers.map(({ name }) => [name, {
      F: median(name, "F"),
      B: median(name, "B"),
      W: median(name, "W"),
    }]));
  }

  /** The gradients that come back to a stage for a micro-batch. */
  #outputGradients(stage: number, shape: BatchShape, size: number): TensorSpec[] {
    const specs = this.#specs(shape, size);
    const { outputs } = this.#stages[stage]!;
    return outputs.filter(({ needsGradient }) => needsGradient).map(({ ref }) => specs.get(refKey(ref))!);
  }

  #schedule(lane: ReadyLane, microBatches: number): Schedule {
    let schedule = lane.schedules.get(microBatches);
    if (!schedule) {
      const stages = this.#links.length;
      const name = stages === 1 ? "1f1b" : this.options.schedule;
      const { maxInFlight } = this.options;
      schedule = makeSchedule(name, {
        stages,
        microBatches,
        times: lane.times && timesFor(lane.times, lane.weightBatch),
        maxInFlight,
        weightBatch: lane.weightBatch,
      });
      validate(schedule, microBatches);
      lane.schedules.set(microBatches, schedule);
    }
    return schedule;
  }

  /** Numbers of micro-batches that W over several is captured for. */
  #weightBatches(microBatches: number): number[] {
    const { weightBatch } = this.options;
    const wanted = weightBatch === "auto" ? WEIGHT_BATCHES : [weightBatch];
    return wanted.filter((k) => k > 1 && k <= microBatches);
  }

  /** Per stage, how many micro-batches one W takes. */
  #chooseWeightBatch(times: readonly MeasuredTimes[] | undefined, microBatches: number): number[] {
    const { weightBatch, maxInFlight } = this.options;
    if (!times) return this.#stages.map(() => 1);
    if (weightBatch !== "auto") return times.map(() => Math.min(weightBatch, microBatches));
    return chooseWeightBatch(microBatches, times, maxInFlight);
  }

  #laneWorkload(lane: ReadyLane, stage: number, size: number): Workload {
    const key = `${stage}/${size}`;
    let workload = lane.workloads.get(key);
    if (!workload) {
      const split = lane.times !== undefined;
      const batches = split ? this.#weightBatches(lane.microBatches) : [];
      workload = this.#workload(this.#stages[stage]!, lane.shape, size, split, batches);
      lane.workloads.set(key, workload);
    }
    return workload;
  }

  #workload(
    stage: StageConfig,
    shape: BatchShape,
    size: number,
    split: boolean,
    batches: readonly number[],
  ): Workload {
    return stageWorkload(
      stage,
      shape.mode,
      this.#specs(shape, size),
      withBatch(shape.targets, size),
      split,
      batches,
    );
  }

  /** All tensors of one micro-batch. */
  #specs(shape: BatchShape, size: number): Map<string, TensorSpec> {
    const shapes = inferShapes(
      this.model,
      this.graph,
      withBatch(shape.inputs, size).map((spec) => spec.shape),
    );
    const specs = new Map<string, TensorSpec>();
    this.graph.inputs.forEach(({ ref }, i) =>
      specs.set(refKey(ref), { shape: shapes.get(refKey(ref))!, dtype: shape.inputs[i]!.dtype })
    );
    for (const layer of this.graph.layers) {
      layer.nodes.forEach(({ outputs }, node) => {
        outputs.forEach(({ dtype }, tensor) => {
          const key = refKey({ layer: layer.name, node, tensor });
          specs.set(key, { shape: shapes.get(key)!, dtype });
        });
      });
    }
    return specs;
  }

  async #run(command: (stage: number) => StepCommand): Promise<StepReport[]> {
    await this.#settling;
    const pending = this.#links.map((link, stage) => link.ask("run", command(stage)));
    const settled = Promise.allSettled(pending);
    try {
      return await firstFailure(pending);
    } catch (error) {
      this.#settling = settled.then(() => this.#recover());
      await Promise.race([this.#settling, new Promise((done) => setTimeout(done, SETTLE_MS))]);
      throw error;
    }
  }

  /** Makes the stages ready for another run. */
  async #recover(): Promise<void> {
    if (this.#broken) return; // the next start begins anew
    this.#abort.clear();
    await Promise.allSettled(this.#links.map((link) => link.ask("reset")));
    for (const lane of this.#lanes.values()) lane.run = lane.fed;
  }

  async #all<T>(f: (link: WorkerLink, stage: number) => Promise<T>): Promise<T[]> {
    await this.#settling;
    return await Promise.all(this.#links.map(f));
  }
}

/** Waits for all; throws the first error that is not the echo of another's. */
async function firstFailure(pending: readonly Promise<Reply<StepReport>>[]): Promise<StepReport[]> {
  let echo: StageError | undefined;
  const reports = await Promise.all(pending.map(async (reply) => {
    const answer = await reply;
    if (answer.ok) return answer.value;
    const error = new StageError(answer.failure);
    if (!answer.failure.aborted) throw error;
    echo = error;
  }));
  if (echo) throw echo;
  return reports as StepReport[];
}

/** Micro-batches of a batch. */
function microBatchesOf(batchSize: number, size: number, step: number): MicroBatch[] {
  return Array.from({ length: Math.ceil(batchSize / size) }, (_, index) => ({
    index,
    step,
    firstSample: index * size,
    size: Math.min(size, batchSize - index * size),
    batchSize,
  }));
}

function withBatch(specs: readonly TensorSpec[], size: number): TensorSpec[] {
  return specs.map(({ shape, dtype }) => ({ shape: [size, ...shape], dtype }));
}
