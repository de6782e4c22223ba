/**
 * Shares of an epoch for replicas, with the semantics of PyTorch's `torch.utils.data.DistributedSampler`: all ranks
 * know one order of the epoch, and rank r takes its places r, r + R, r + 2R, ... of R replicas.
 * @module
 */
import { checkInteger, checkOneOf } from "../checks.ts";
import { inOrder, permutation } from "./shuffle.ts";

/** What becomes of the samples beyond a multiple of the replicas. */
export const TAILS = ["pad", "drop", "keep"] as const satisfies readonly Tail[];

/**
 * `pad`: samples from the order's beginning are taken again, so that shares are equal. `drop`: those beyond are left
 * out (PyTorch's `drop_last`). `keep`: the first ranks have one more; right where replicas count by their samples.
 */
export type Tail = "pad" | "drop" | "keep";

/** What is shared, and how. */
export interface SamplerOptions {
  /** Samples of the data. */
  readonly length: number;
  readonly replicas: number;
  /** Whether the order is drawn from `seed` and the epoch. */
  readonly shuffle: boolean;
  readonly seed: number;
  readonly tail: Tail;
}

/**
 * One rank's samples in an epoch, in order.
 *
 * @param rank from 0 to `replicas - 1`
 * @param epoch counted from 0
 * @throws {RangeError} if an argument makes no sense
 *
 * @example
 * ```ts
 * const options = { length: 5, replicas: 2, shuffle: false, seed: 0, tail: "pad" } as const;
 * console.log(shareOfEpoch(options, 0, 0)); // Uint32Array [0, 2, 4]
 * console.log(shareOfEpoch(options, 1, 0)); // Uint32Array [1, 3, 0]
 * ```
 */
export function shareOfEpoch(options: SamplerOptions, rank: number, epoch: number): Uint32Array {
  const { length, replicas, shuffle, seed, tail } = options;
  checkInteger("length", length, 0);
  checkInteger("rank", rank, 0);
  checkSharing(replicas, tail);
  if (rank >= replicas) {
    throw new RangeError(`Cannot use rank ${rank}: expected one from 0 to ${replicas - 1}, one a replica`);
  }
  const order = shuffle ? permutation(length, seed, epoch) : inOrder(length);
  return everyNth(withTail(order, replicas, tail), rank, replicas);
}

/** @throws {RangeError} for replicas or a tail that cannot be */
export function checkSharing(replicas: number, tail: Tail): void {
  checkInteger("replicas", replicas, 1);
  checkOneOf("tail", tail, TAILS);
}

/** Samples in an epoch, those that were taken again counted too. */
export function lengthWithTail(length: number, replicas: number, tail: Tail): number {
  if (tail === "keep") return length;
  return replicas * (tail === "pad" ? Math.ceil(length / replicas) : Math.floor(length / replicas));
}

/** An epoch's order, longer or shorter by its tail; where there are fewer samples than replicas, they repeat. */
export function withTail(order: Uint32Array, replicas: number, tail: Tail): Uint32Array {
  const { length } = order;
  return Uint32Array.from(
    { length: lengthWithTail(length, replicas, tail) },
    (_, place) => order[place % length]!,
  );
}

/** Places `rank`, `rank + replicas`, ... of an order. */
export function everyNth(order: Uint32Array, rank: number, replicas: number): Uint32Array {
  return order.filter((_, place) => place % replicas === rank);
}
