/** The order in which an epoch's samples come, for one device or for several replicas. @module */
import { checkInteger } from "../checks.ts";
import { checkSharing, everyNth, lengthWithTail, type Tail, withTail } from "./distributed_sampler.ts";
import { inOrder, permutation } from "./shuffle.ts";

/** How replicas share every micro-batch: rank r of R takes its rows r, r + R, r + 2R, ... */
export interface Sharding {
  readonly replicas: number;
  /** Samples in a micro-batch of all replicas; the last one of a batch may have fewer. */
  readonly microBatchSize: number;
  /** What becomes of the epoch's samples beyond a multiple of the replicas. */
  readonly tail: Tail;
}

/** What an epoch's order depends on. */
export interface OrderOptions {
  /** Samples in a batch. */
  readonly batchSize: number;
  readonly shuffle: boolean;
  readonly seed: number;
  /**
   * Brings together what one replica takes of each micro-batch, lower ranks first: see `shareOf`. A batch has the
   * very samples that it has without, until the epoch's tail. Default: none.
   */
  readonly sharding?: Sharding | undefined;
}

/**
 * Samples in an epoch.
 *
 * @param samples of the data
 * @throws {RangeError} for a sharding that makes no sense, or that leaves nothing
 */
export function epochLength(samples: number, sharding: Sharding | undefined): number {
  if (!sharding) return samples;
  const { replicas, microBatchSize, tail } = sharding;
  checkSharing(replicas, tail);
  checkInteger("microBatchSize", microBatchSize, 1);
  const length = lengthWithTail(samples, replicas, tail);
  if (length === 0 && samples > 0) {
    throw new RangeError(
      `Cannot share ${samples} samples among ${replicas} replicas with tail "${tail}": none is left; ` +
        `give at least ${replicas} samples, or use tail "pad" or "keep"`,
    );
  }
  return length;
}

/** The sample at each place of an epoch. @param epoch counted from 0 */
export function epochOrder(samples: number, options: OrderOptions, epoch: number): Uint32Array {
  const { batchSize, shuffle, seed, sharding } = options;
  const order = shuffle ? permutation(samples, seed, epoch) : inOrder(samples);
  if (!sharding) return order;
  const { replicas, microBatchSize, tail } = sharding;
  const all = withTail(order, replicas, tail);
  for (let batch = 0; batch < all.length; batch += batchSize) {
    const end = Math.min(batch + batchSize, all.length);
    for (let first = batch; first < end; first += microBatchSize) {
      groupByRank(all.subarray(first, Math.min(first + microBatchSize, end)), replicas);
    }
  }
  return all;
}

/** Puts a micro-batch's rows in order of the ranks that take them. */
function groupByRank(rows: Uint32Array, replicas: number): void {
  const shares = Array.from({ length: replicas }, (_, rank) => everyNth(rows, rank, replicas));
  let at = 0;
  for (const share of shares) {
    rows.set(share, at);
    at += share.length;
  }
}
