/** Batches, and how they are cut into micro-batches. @module */
import type { TensorSpec } from "../../ring/dtype.ts";
import type { MicroBatch, Workload } from "../../stages/executor.ts";
import type { ResolvedOptions } from "../options.ts";

/** What a batch of a source looks like. */
export interface BatchShape {
  readonly mode: Workload["mode"];
  /** Samples in the largest batch. */
  readonly batchSize: number;
  /** Batches of the caller's that are joined in it, each of them cut as it would be by itself. Absent: 1. */
  readonly joined?: number;
  /** Without the batch axis. */
  readonly inputs: readonly TensorSpec[];
  readonly targets: readonly TensorSpec[];
}

/**
 * Samples in a micro-batch, and how many there are: sizes as `torch.chunk`'s, the last one smaller.
 *
 * @throws {RangeError} for a training batch of fewer samples than micro-batches, or than replicas
 */
export function cutBatch(
  { batchSize, joined = 1, mode }: Pick<BatchShape, "batchSize" | "joined" | "mode">,
  { microBatches, splitSize, replicas = 1 }: Pick<ResolvedOptions, "microBatches" | "splitSize"> & {
    replicas?: number;
  },
): { microBatchSize: number; microBatches: number } {
  const own = Math.ceil(batchSize / joined);
  if (splitSize === undefined && mode === "train" && own < microBatches) {
    throw new RangeError(
      `Cannot cut a batch of ${own} into ${microBatches} micro-batches: expected batchSize >= microBatches; ` +
        `use a larger batch or fewer micro-batches`,
    );
  }
  const microBatchSize = Math.min(batchSize, splitSize ?? Math.ceil(own / microBatches));
  if (mode === "train" && microBatchSize < replicas) {
    throw new RangeError(
      `Cannot share micro-batches of ${microBatchSize}, of a batch of ${own}, among ${replicas} replicas: expected ` +
        `at least a sample for each; use a larger batch, fewer micro-batches or fewer devices`,
    );
  }
  return { microBatchSize, microBatches: Math.ceil(batchSize / microBatchSize) };
}

/** One of several replicas. */
export interface Replica {
  readonly rank: number;
  readonly replicas: number;
}

/** The micro-batches of a batch; of a replica, its share of each. */
export function microBatchesOf(
  batchSize: number,
  size: number,
  step: number,
  { rank, replicas }: Replica = { rank: 0, replicas: 1 },
): MicroBatch[] {
  const length = Math.ceil(batchSize / size);
  return Array.from({ length }, (_, index) => {
    const wholeSize = Math.min(size, batchSize - index * size);
    const { first, count } = shareOf(wholeSize, rank, replicas);
    return {
      index,
      step,
      firstSample: index * size + first,
      size: count,
      batchSize,
      wholeSize,
      last: index === length - 1,
    };
  });
}

/**
 * The rows of a micro-batch that a replica takes, once those of each rank lie together: as many as there are of
 * places `rank`, `rank + replicas`, ...
 */
export function shareOf(size: number, rank: number, replicas: number): { first: number; count: number } {
  const first = rank * Math.floor(size / replicas) + Math.min(rank, size % replicas);
  return { first, count: Math.max(0, Math.ceil((size - rank) / replicas)) };
}

/** Tensors of so many samples. */
export function withBatch(specs: readonly TensorSpec[], size: number): TensorSpec[] {
  return specs.map(({ shape, dtype }) => ({ shape: [size, ...shape], dtype }));
}
