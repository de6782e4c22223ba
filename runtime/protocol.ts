/** What the coordinator and its workers say to each other: types alone, apart from what moves them. @module */
import type { TensorSpec } from "../ring/dtype.ts";
import type { GroupChannel } from "../ring/group_channel.ts";
import type { RingChannel, RingCounters } from "../ring/ring.ts";
import type { Clipping } from "../stages/clipping.ts";
import type { MicroBatch, Workload } from "../stages/executor.ts";
import type { OutputSpec, PortableLosses } from "../stages/losses.ts";
import type { OptimizerSpec, UpdateScalars } from "../stages/optimizers.ts";
import type { LayerCost } from "../stages/balance.ts";
import type { StageConfig } from "../stages/stage_config.ts";
import type { StageMemory } from "../stages/stage_memory.ts";
import type { Action } from "./schedules/action.ts";
import type { StageTimes } from "./schedules/simulate.ts";
import type { PortableFailure } from "./errors.ts";
import type { Gauge } from "./gauge.ts";
import type { LibraryPaths } from "./tensorflow/library/library.ts";

/** A device as a worker is told of it. */
export interface WorkerDevice {
  /** "cpu:0", "cuda:1". */
  readonly name: string;
  /** A core or a GPU. */
  readonly kind: "cpu" | "cuda";
  /** CPU: the core to pin to. CUDA: the device's number. */
  readonly index: number;
}

/** The engine that a worker starts. */
export type WorkerEngine =
  | {
    readonly name: "tensorflow";
    readonly libraries: LibraryPaths;
    readonly memoryGrowth: boolean;
    /** Share of the device's memory, 0 to 1. */
    readonly memoryFraction?: number;
    /** Convolutions as matrix products. Absent: on a CPU. */
    readonly lowerings?: boolean;
    /** What takes its place, after a line that says so, where it does not start. Absent: nothing does. */
    readonly orElse?: "wasm";
  }
  | {
    readonly name: "wasm";
    /** Bytes that it may use, fewer than there are: for tests alone. */
    readonly memoryLimit?: number;
    /** Whether SIMD may be used. Absent: where there is any; false is for tests alone. */
    readonly simd?: boolean;
  };

/** First message to a worker. */
export interface WorkerStart {
  /** Its number among all workers. */
  readonly worker: number;
  readonly stage: number;
  /** Which of several replicas the stage belongs to. */
  readonly replica: number | undefined;
  readonly device: WorkerDevice;
  readonly engine: WorkerEngine;
  /** Modules to import: custom layers, losses. */
  readonly modules: readonly string[];
  readonly abort: SharedArrayBuffer;
}

/** A stage to build. */
export interface StageSetup {
  readonly config: StageConfig;
  /** Outputs of the whole model. */
  readonly outputs: readonly OutputSpec[];
  readonly losses: PortableLosses | undefined;
  readonly optimizer: OptimizerSpec | undefined;
  readonly clipping: Clipping | undefined;
  /** By which the stages add up their norms, where there are several and gradients are clipped by norm. */
  readonly norms: GroupChannel | undefined;
  /** Copies of the model that train. */
  readonly replicas: number;
  /** By which replicas add up gradients, where there are several. */
  readonly sums: GroupChannel | undefined;
  readonly seed: number;
  readonly capture: boolean;
  /** All weights of the model. */
  readonly weights: SharedArrayBuffer;
}

/** The rings of one stage for one way of running. */
export interface LaneSetup {
  readonly id: number;
  /** One per stage input, in order. */
  readonly inputs: readonly RingChannel[];
  /** One per model output that lies here. */
  readonly targets: readonly RingChannel[];
  /** One per output to the next stage. */
  readonly outputs: readonly RingChannel[];
  /** One per output whose gradient comes back. */
  readonly outputGradients: readonly RingChannel[];
  /** One per input whose gradient is sent back. */
  readonly inputGradients: readonly RingChannel[];
}

/** One step of one stage. */
export interface StepCommand {
  readonly lane: number;
  /** Number of the batch in its lane: messages carry it. */
  readonly step: number;
  readonly actions: readonly Action[];
  readonly microBatches: readonly MicroBatch[];
  /** One per micro-batch. */
  readonly workloads: readonly Workload[];
  readonly scalars: UpdateScalars;
  readonly trace: boolean;
}

/** One action as it ran. Times are milliseconds since the epoch, or lengths in milliseconds. */
export interface TraceEvent {
  /** What ran. */
  readonly action: Action;
  /** When it began, the wait for its messages included. */
  readonly start: number;
  /** When its last message was sent. */
  readonly end: number;
  /** Waiting for messages and for room. */
  readonly wait: number;
  /** Copying into rings. */
  readonly copy: number;
  /** Inside the engine. */
  readonly engine: number;
}

/** A model output for one micro-batch. */
export interface Prediction extends TensorSpec {
  /** Its bytes, row-major. */
  readonly data: ArrayBuffer;
}

/** What a step of one stage came to. */
export interface StepReport {
  /** `[1 + metrics]`, or empty. */
  readonly results: Float32Array;
  readonly penalty: number;
  readonly trace: readonly TraceEvent[];
  /** Per model output that lies here, per micro-batch. */
  readonly predictions: readonly (readonly Prediction[])[];
}

/** Counters of a stage, for tests and debugging. */
export interface StageCounters {
  /** Messages, bytes and waits by ring and side. */
  readonly rings: Readonly<Record<string, RingCounters>>;
  /** Tensors, handles, functions and micro-batches alive. */
  readonly counts: Readonly<Record<string, number>>;
}

/** An answer or a failure: thrown errors would lose what they carry on the way. */
export type Reply<T> = { readonly ok: true; readonly value: T } | {
  readonly ok: false;
  readonly failure: PortableFailure;
};

/** What a worker says it has become. */
export interface StageReady {
  /** Why the stage runs eagerly though capturing was asked for. */
  readonly eager?: string;
}

/** What a worker can be asked. */
export interface WorkerApi {
  /** Answers with what computes, and a line that a person should read. */
  start(start: WorkerStart): Promise<Reply<{ engine: string; notice?: string }>>;
  build(setup: StageSetup): Promise<Reply<void>>;
  openLane(lane: LaneSetup): Promise<Reply<void>>;
  closeLane(id: number): Promise<Reply<void>>;
  /** Captures ahead of the first step. Answers with seconds spent. */
  prepare(workloads: readonly Workload[]): Promise<Reply<{ seconds: number; eager?: string }>>;
  /** What the workload will take of the device's memory; undefined on an engine that cannot tell. */
  memory(workload: Workload): Promise<Reply<StageMemory | undefined>>;
  /**
   * Measures F, B and W of the stage, and of W over several micro-batches (per micro-batch), in milliseconds.
   *
   * @param outputGradients the gradients that come back for a micro-batch
   */
  measure(
    workload: Workload,
    outputGradients: readonly TensorSpec[],
  ): Promise<Reply<StageTimes & { batched: Readonly<Record<number, number>> }>>;
  /** Measures each layer of the stage, in milliseconds per micro-batch. */
  profile(
    workload: Workload,
    outputGradients: readonly TensorSpec[],
  ): Promise<Reply<{ costs: Readonly<Record<string, LayerCost>>; eager?: string }>>;
  /** Times whole steps of a stage that is built to be measured: see `gaugeStage`. */
  gauge(workload: Workload): Promise<Reply<Gauge>>;
  run(command: StepCommand): Promise<Reply<StepReport>>;
  /** Drops what is in flight and in this stage's incoming rings. */
  reset(): Promise<Reply<void>>;
  loadWeights(): Promise<Reply<void>>;
  storeWeights(): Promise<Reply<void>>;
  /** A number that tells the bits of each weight, in the order of the stage's weights. */
  weightChecks(): Promise<Reply<number[]>>;
  counters(): Promise<Reply<StageCounters>>;
  dispose(): Promise<Reply<void>>;
}
