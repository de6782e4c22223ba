/** How replicas share what a trainer is given. @module */
import { cutBatch } from "../coordinator/micro_batches.ts";
import { epochLength, type Sharding } from "../data/epoch_order.ts";
import type { ResolvedOptions } from "../options.ts";

/**
 * How replicas share the samples of an epoch; undefined for one device, and for a dataset, whose batches come as they
 * are and are shared in their order.
 *
 * @param samples undefined for a dataset
 * @throws {TypeError|RangeError} for a tail that a dataset cannot have, or a batch with fewer samples than replicas
 */
export function shardingFor(
  batchSize: number,
  samples: number | undefined,
  options: Pick<ResolvedOptions, "replicas" | "tail" | "microBatches" | "splitSize">,
): Sharding | undefined {
  const { replicas, tail } = options;
  if (replicas === 1 || samples === 0) return undefined;
  if (samples === undefined) {
    if (tail === "keep") return undefined;
    throw new TypeError(
      `Cannot use tail "${tail}" with a dataset: its batches come as they are; give tensors or samples, or batch ` +
        `the dataset without a smaller last one`,
    );
  }
  const length = epochLength(samples, { replicas, microBatchSize: 1, tail });
  const shape = { mode: "train", batchSize: Math.min(batchSize, length) } as const;
  return { replicas, tail, microBatchSize: cutBatch(shape, options).microBatchSize };
}
