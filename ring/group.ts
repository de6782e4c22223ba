/**
 * Members that add up their values, each in a worker of its own. Whoever asks a group to reduce does not know
 * what it spans; `open_group.ts` opens one in shared memory.
 * @module
 */

/** One member's part of a sum. */
export interface Contribution {
  /** Copies elements `from` to `from + target.length - 1` into `target`. */
  read(from: number, target: Float32Array): void;
}

/** A sum under way. */
export interface Reduction {
  /** Goes on as far as the other members have come, without waiting. @returns whether the sum is whole */
  advance(): boolean;
  /**
   * Goes on to the end, waiting for the others.
   *
   * @returns the sum, in memory that all members read: valid until `release`, and not to be written
   * @throws {AbortedError} when the abort flag goes up
   */
  finish(): Float32Array<SharedArrayBuffer>;
}

/** One member's end of a group. */
export interface Group {
  /** This member's number, from 0. */
  readonly rank: number;
  /** Members. */
  readonly size: number;
  /** Milliseconds that this member has waited for others so far. */
  readonly waitMs: number;
  /**
   * Begins to sum. All members do so for the same slots in the same order, and all get the same bits.
   *
   * @param slot which of the sums that the group was made for
   * @param length elements, as many for every member; at most what the slot holds
   */
  reduce(slot: number, length: number, contribution: Contribution): Reduction;
  /** Gives a sum back: the next one of its slot may overwrite it once every member has done so. */
  release(slot: number): void;
  /** Forgets the sums under way, after a run that failed; while no member is at work. */
  reset(): void;
}
