/** The coordinator's end of one way of running: it feeds batches and knows each step's commands. @module */
import type { AbortFlag } from "../../ring/abort.ts";
import { RingSender } from "../../ring/ring.ts";
import type { MicroBatch, Workload } from "../../stages/executor.ts";
import type { UpdateScalars } from "../../stages/optimizers.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import { type Link, linksOf } from "../../stages/routes.ts";
import type { StageMemory } from "../../stages/stage_memory.ts";
import { checkAlike, type HostBatch } from "../data/batch_source.ts";
import { type LaneRings, outgoing } from "./lanes.ts";
import type { MeasuredTimes } from "../measure.ts";
import { memoryNeeded } from "./memory_fit.ts";
import { type BatchShape, microBatchesOf } from "./micro_batches.ts";
import type { StepCommand } from "../protocol.ts";
import { action, type Schedule } from "../schedules/action.ts";
import type { Capacities, StageTimes } from "../schedules/simulate.ts";
import { capacitiesFor, firstMicroBatches, makeSchedule, withReduction } from "../schedules/schedules.ts";
import { validate } from "../schedules/validate.ts";
import { chooseWeightBatch, timesFor } from "../schedules/weight_batch.ts";
import type { Workloads } from "./workloads.ts";

/** What a lane is made for. */
export interface LanePlan {
  readonly shape: BatchShape;
  /** Samples in a micro-batch. */
  readonly microBatchSize: number;
  /** The most of them that one replica has. */
  readonly shareSize: number;
  /** Micro-batches in the largest batch. */
  readonly microBatches: number;
  readonly stages: readonly StageConfig[];
  /** Measured times of each stage, where B and W run apart. */
  readonly times: readonly MeasuredTimes[] | undefined;
  /** What each stage takes of its memory, where the engine can tell. */
  readonly memory?: readonly (StageMemory | undefined)[];
}

/** One way of running, ready to be fed. */
export class ReadyLane {
  readonly #weightBatch: readonly number[];
  readonly #links: readonly Link[];
  readonly #schedules = new Map<number, Schedule>();
  readonly #workloads = new Map<string, Workload>();
  /** One per replica. */
  #rings: readonly LaneRings[] = [];
  #senders: RingSender[][] = [];
  #capacities: Capacities | undefined;
  #fed = 0;
  #run = 0;

  constructor(readonly plan: LanePlan, readonly workloads: Workloads) {
    const { times, stages, microBatches } = plan;
    this.#links = linksOf(stages.flatMap(outgoing));
    const { weightBatch, maxInFlight } = workloads.options;
    this.#weightBatch = !times
      ? stages.map(() => 1)
      : weightBatch === "auto"
      ? chooseWeightBatch(microBatches, times, maxInFlight)
      : times.map(() => Math.min(weightBatch, microBatches));
  }

  /** Slots of the rings between stages, by link. @throws {Error} if the schedule cannot run with them */
  get capacities(): Capacities {
    return this.#capacities ??= this.#makeCapacities();
  }

  #makeCapacities(): Capacities {
    const { shape, microBatches } = this.plan;
    const links = this.#links;
    if (shape.mode !== "train") {
      // Stages between source and destination each have a micro-batch of their own meanwhile.
      return { activations: links.map(({ from, to }) => to - from + 1), gradients: links.map(() => 0) };
    }
    const schedule = this.schedule(microBatches);
    const capacities = capacitiesFor(schedule, microBatches, this.#times(), links);
    for (let m = 1; m <= microBatches; m++) validate(this.schedule(m), m, capacities, links);
    return capacities;
  }

  /** Opens the coordinator's ends of the rings. @param rings one per replica */
  open(rings: readonly LaneRings[], abort: AbortFlag): void {
    this.#rings = rings;
    this.#senders = rings.map(({ feeds }) => feeds.map(({ channel }) => new RingSender(channel, abort)));
  }

  /** Number of the lane. */
  get id(): number {
    return this.#rings[0]!.id;
  }

  /** Bytes of all rings. */
  get ringBytes(): number {
    const rings = this.#rings.flatMap(({ setups }) => setups).flatMap((s) =>
      [s.inputs, s.targets, s.outputs, s.outputGradients, s.inputGradients].flat()
    );
    return [...new Set(rings)].reduce((sum, { memory }) => sum + memory.buffer.byteLength, 0);
  }

  /** Whether a batch was fed that has not run. */
  get waiting(): boolean {
    return this.#fed !== this.#run;
  }

  /** Forgets batches that were fed and not run. */
  discard(): void {
    this.#run = this.#fed;
  }

  /**
   * Hands a batch to the stages; at most one beyond the batch that runs.
   *
   * @throws {RangeError} for a batch that the lane was not made for
   */
  feed(batch: HostBatch): void {
    this.#check(batch);
    const step = this.#fed++;
    for (const [rank, { feeds }] of this.#rings.entries()) {
      for (const microBatch of this.#microBatches(batch.size, step, rank)) {
        if (microBatch.size === 0) continue; // fewer samples than replicas
        feeds.forEach(({ kind, index }, i) => {
          const tensor = kind === "input" ? batch.inputs[index]! : batch.targets[index]!;
          const sender = this.#senders[rank]![i]!;
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
  }

  /** Commands of the next step, which runs the oldest batch that was fed. @param size its samples */
  nextStep(size: number, scalars: UpdateScalars, trace: boolean): (worker: number) => StepCommand {
    const step = this.#run++;
    const { shape, stages } = this.plan;
    return (worker) => {
      const stage = worker % stages.length;
      const microBatches = this.#microBatches(size, scalars.iteration, Math.floor(worker / stages.length));
      return {
        lane: this.id,
        step,
        actions: shape.mode === "train"
          ? this.schedule(microBatches.length)[stage]!
          : microBatches.map(({ index }) => action("F", index)),
        microBatches,
        workloads: microBatches.map((m) => this.#workload(stage, m)),
        scalars,
        trace,
      };
    };
  }

  #microBatches(size: number, step: number, rank: number): MicroBatch[] {
    const { replicas } = this.workloads.options;
    return microBatchesOf(size, this.plan.microBatchSize, step, { rank, replicas });
  }

  /** The training schedule for so many micro-batches: that of the largest batch, or its first part. */
  schedule(microBatches: number): Schedule {
    const known = this.#schedules.get(microBatches);
    if (known) return known;
    const most = this.plan.microBatches;
    const schedule = microBatches < most
      ? firstMicroBatches(this.schedule(most), microBatches)
      : this.#makeSchedule(microBatches);
    validate(schedule, microBatches, undefined, this.#links);
    this.#schedules.set(microBatches, schedule);
    return schedule;
  }

  /** The schedule; where memory is short, with no more micro-batches in flight than fit, if any do. */
  #makeSchedule(microBatches: number): Schedule {
    const stages = this.plan.stages.length;
    const { schedule: name, maxInFlight, weightBatch: wanted, replicas } = this.workloads.options;
    if (this.workloads.options.strategy === "modelParallel") { // one stage at work at a time
      const [own] = makeSchedule("1f1b", { stages: 1, microBatches });
      return Array.from({ length: stages }, () => own!);
    }
    const make = (bound: number | undefined) => {
      const weightBatch = this.#weightBatch.map((k) => wanted === "auto" ? Math.min(k, bound ?? k) : k);
      const times = this.plan.times && timesFor(this.plan.times, weightBatch);
      const options = { stages, microBatches, times, maxInFlight: bound, weightBatch };
      const schedule = makeSchedule(stages === 1 ? "1f1b" : name, options);
      return replicas > 1 ? withReduction(schedule) : schedule;
    };
    let schedule = make(maxInFlight);
    for (
      let bound = Math.min(maxInFlight ?? microBatches, microBatches);
      !this.#fits(schedule) && bound > 1;
    ) {
      schedule = make(--bound);
    }
    return schedule;
  }

  #fits(schedule: Schedule): boolean {
    const { memory, shareSize } = this.plan;
    return !memory?.some((own, worker) =>
      own && memoryNeeded(own, schedule[worker % schedule.length]!, shareSize) > own.limit
    );
  }

  /** Measured times, with W as it is batched. */
  #times(): StageTimes[] | undefined {
    const { times } = this.plan;
    return times && timesFor(times, this.#weightBatch);
  }

  #workload(stage: number, microBatch: MicroBatch): Workload {
    const size = microBatch.size || this.plan.shareSize; // one without a share runs nothing
    const key = `${stage}/${size}`;
    const known = this.#workloads.get(key);
    if (known) return known;
    const { stages, shape, times, microBatches } = this.plan;
    const split = times !== undefined;
    const weightBatches = split ? this.workloads.weightBatches(microBatches) : [];
    const workload = this.workloads.of(stages[stage]!, shape, size, { split, weightBatches });
    this.#workloads.set(key, workload);
    return workload;
  }

  /** A dataset's later batches may be smaller than its first, and otherwise alike. */
  #check(batch: HostBatch): void {
    const { shape } = this.plan;
    if (batch.size > shape.batchSize) {
      throw new RangeError(
        `Cannot run a batch of ${batch.size} samples: the first one had ${shape.batchSize}; ` +
          `give batches no larger than it`,
      );
    }
    checkAlike(batch, shape);
  }
}
