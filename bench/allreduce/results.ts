/** What `deno task bench allreduce` measures: the shape of `allreduce` in `results.json`. @module */

/** What is compared, in the order of the table. */
export const CONTESTANTS = ["ring", "parameterServer", "gloo", "memcpy"] as const;

/** Name of what is compared. */
export type ContestantName = typeof CONTESTANTS[number];

/** One contestant at one size, between so many workers. */
export interface AllreduceTiming {
  /** Median over rounds. */
  readonly seconds: number;
  /** Every round's seconds, in order: the slowest worker's mean over the round's repetitions. */
  readonly rounds: readonly number[];
  /** `bytes / seconds / 1e9`: bytes that each worker contributes, in the time until all have the sum. */
  readonly gigabytesPerSecond: number;
}

/** All contestants at one size, between so many workers. */
export interface AllreduceCase {
  readonly workers: number;
  /** That each worker contributes. */
  readonly bytes: number;
  readonly timings: Readonly<Partial<Record<ContestantName, AllreduceTiming>>>;
  /** Median over rounds of the contestant's seconds divided by the ring's in the same round. */
  readonly ringSpeedup: Readonly<Partial<Record<ContestantName, number>>>;
}

/** A case that was left out. */
export interface SkippedCase {
  readonly workers: number;
  readonly bytes: number;
  readonly reason: string;
}

/** Everything that was measured of summing among workers. */
export interface AllreduceResults {
  readonly settings: {
    readonly rounds: number;
    /** Cores that the workers share: worker w is bound to core w modulo so many. */
    readonly cores: number;
  };
  readonly cases: readonly AllreduceCase[];
  readonly skipped: readonly SkippedCase[];
}
