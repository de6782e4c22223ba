/**
 * What a stage's actions are asked of: F, B, W and the update over one engine's tensors. The interpreter moves
 * messages; an executor computes.
 * @module
 */
import type { TensorSpec } from "../ring/dtype.ts";
import type { LayerCost } from "./balance.ts";
import type { UpdateScalars } from "./optimizers.ts";
import type { StageMemory } from "./stage_memory.ts";

/** An engine's tensor; only the engine that made it knows what it is. */
export type Value = unknown;

/** One micro-batch of one step. */
export interface MicroBatch {
  /** Index within the step. */
  readonly index: number;
  /** Optimizer step. */
  readonly step: number;
  /** Index of its first sample within the batch. */
  readonly firstSample: number;
  /** Its samples; of a replica, those of its own share, 0 where there are fewer samples than replicas. */
  readonly size: number;
  /** The batch's samples, of all replicas. */
  readonly batchSize: number;
  /** Samples of this micro-batch on all replicas together. Default: `size`. */
  readonly wholeSize?: number;
  /** Whether it is the step's last, whose backward completes the gradients. */
  readonly last?: boolean;
}

/** What a stage is about to run, so that it can be captured before the first step. */
export interface Workload {
  /** Equal for equal workloads, and for no others. */
  readonly key: string;
  /** Shapes and dtypes of the stage's inputs, per micro-batch. */
  readonly inputs: readonly TensorSpec[];
  /** The same of the targets of the model's outputs that lie here. */
  readonly targets: readonly TensorSpec[];
  readonly mode: "train" | "evaluate" | "predict";
  /** Training: whether W runs apart from B. */
  readonly split: boolean;
  /** Training: numbers of micro-batches that one W may take. */
  readonly weightBatches: readonly number[];
  /** What each segment runs, for a stage of several. */
  readonly segments?: readonly Workload[];
}

/** What a step has added up on one replica, where it lies: float32, valid until it is closed. */
export interface OpenSums {
  /** Gradients of the trained weights in their order, then those of BatchNorm's statistics that there are. */
  readonly values: readonly Float32Array[];
  close(): void;
}

/** What one round of a profile is given. */
export interface ProfileInputs {
  readonly x: readonly Value[];
  readonly targets: readonly Value[];
  /** Of the outputs that need a gradient, in order. */
  readonly outputGradients: readonly Value[];
}

/** One stage on one engine. Values that it is given become its own; those that it returns, the caller's. */
export interface StageExecutor {
  /** Milliseconds spent inside the engine so far. */
  readonly engineMs: number;
  /** Captures what `workload` needs. @returns seconds spent */
  prepare(workload: Workload): number;
  /** What it will take of the device's memory, on an engine that can tell. */
  memory?(workload: Workload): StageMemory | undefined;
  /** F. @returns tensors for the next stage */
  forward(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[];
  /**
   * B, or B and W as one.
   *
   * @param outputGradients those of the outputs that need one, in order
   * @returns gradients of the inputs that need one, in order
   */
  backward(index: number, outputGradients: readonly Value[]): Value[];
  /**
   * W of these micro-batches, in one call if the workload was prepared for their number.
   *
   * @param keep keeps them in flight, to measure it again
   */
  weight(indices: readonly number[], keep?: boolean): void;
  /** Waits for the sums of all replicas, where an executor has begun to add them up. */
  reduce?(): void;
  /** The norm of the gradients accumulated since the last update, the layers' penalties' included. */
  gradientNorm(): number;
  /**
   * The optimizer's update, from the gradients accumulated since the last.
   *
   * @param scale what gradients clipped by norm are multiplied with; default: 1
   * @returns the layers' penalty
   */
  update(scalars: UpdateScalars, scale?: number): number;
  /** Forward without training. @returns tensors for the next stage, and in mode "predict" the model's outputs */
  infer(
    microBatch: MicroBatch,
    inputs: readonly Value[],
    targets: readonly Value[],
    workload: Workload,
  ): Value[];
  /**
   * Measures each layer, in milliseconds per micro-batch. Gradients that accumulate on the way are dropped.
   *
   * @param inputs makes the inputs of one round; they become the executor's own
   * @param rounds most rounds, after one that warms up
   * @param budgetMs time after which no further round begins; one is always measured
   */
  profile(
    workload: Workload,
    inputs: () => ProfileInputs,
    rounds: number,
    budgetMs: number,
  ): Readonly<Record<string, LayerCost>>;
  /** `[1 + metrics]`: shares of loss and metrics summed since the last call; empty where no output lies here. */
  takeResults(): Float32Array;
  /** Copies weights from the memory that they travel through. */
  loadWeights(memory: SharedArrayBuffer): void;
  /** Copies weights to it. */
  storeWeights(memory: SharedArrayBuffer): void;
  /** Drops micro-batches in flight and gradients accumulated, after a run that failed. */
  reset(): void;
  /** Tensors, handles and functions alive, to see that none leak. */
  counts(): Readonly<Record<string, number>>;
  dispose(): void;
}

/** One stage, or a segment of a replica, whose sums may be added to those of other replicas. */
export interface SegmentExecutor extends StageExecutor {
  /** What the step has added up, after its last backward. */
  openSums(): OpenSums;
  /**
   * Gives the update and `gradientNorm` the sums of all replicas in place of its own.
   *
   * @param values as many as `openSums` gave, of the same sizes; they stay as they are until the update has run
   */
  useSums(values: readonly Float32Array<SharedArrayBuffer>[]): void;
}

/** How an engine's tensors meet the memory of rings. */
export interface EngineTensors {
  /**
   * A tensor over a message's payload.
   *
   * @returns `inPlace` if the payload must stay as it is while the tensor lives
   */
  receive(spec: TensorSpec, payload: Uint8Array<SharedArrayBuffer>): { value: Value; inPlace: boolean };
  /** Shape and dtype. */
  specOf(value: Value): TensorSpec;
  /** Bytes that `copyTo` will write. */
  byteLengthOf(value: Value): number;
  /** Copies a tensor into a message's payload. */
  copyTo(value: Value, payload: Uint8Array): void;
  free(value: Value): void;
}
