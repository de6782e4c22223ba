/** A replica's gradients on their way to the sums of all replicas, a bucket for each segment. @module */
import { align } from "../../ring/dtype.ts";
import type { Contribution, Group, Reduction } from "../../ring/group.ts";
import type { OpenSums, SegmentExecutor } from "../../stages/executor.ts";

/** Elements of a cache line: where each sum begins. */
const LINE = 16;

/** A bucket under way. */
interface Pending {
  readonly segment: number;
  readonly open: OpenSums;
  readonly reduction: Reduction;
}

/** Adds up what segments have accumulated, and hands it back to them. */
export class GradientBuckets {
  #pending: Pending[] = [];
  #finished: number[] = [];

  /** @param segments in the order of the group's first slots */
  constructor(readonly group: Group, readonly segments: readonly SegmentExecutor[]) {}

  /**
   * Begins to add up a segment's gradients, which are whole.
   *
   * @param contributes false for a replica that had no sample in the step: it adds zeros
   */
  begin(segment: number, contributes: boolean): void {
    const open = this.segments[segment]!.openSums();
    const contribution = contributes ? gathered(open.values) : { read: zeros };
    const reduction = this.group.reduce(segment, lengthOf(open.values), contribution);
    this.#pending.push({ segment, open, reduction });
    this.advance();
  }

  /** Goes on as far as the other replicas have come. */
  advance(): void {
    this.#pending.at(-1)?.reduction.advance(); // and every one before it
  }

  /** Waits until all buckets are whole, and gives the segments the sums in place. */
  finish(): void {
    for (const { segment, open, reduction } of this.#pending) {
      const sums = reduction.finish();
      this.#finished.push(segment);
      let at = 0;
      this.segments[segment]!.useSums(open.values.map(({ length }) => {
        const sum = sums.subarray(at, at + length);
        at += align(length, LINE);
        return sum;
      }));
      open.close();
    }
    this.#pending = [];
  }

  /** Gives the sums back, after the update. */
  release(): void {
    for (const segment of this.#finished) this.group.release(segment);
    this.#finished = [];
  }

  /** Forgets what is under way, after a run that failed. */
  reset(): void {
    for (const { open } of this.#pending) open.close();
    this.#pending = [];
    this.#finished = [];
    this.group.reset();
  }
}

function lengthOf(values: readonly Float32Array[]): number {
  return values.reduce((sum, { length }) => sum + align(length, LINE), 0);
}

/** Several arrays as one, each from a cache line on. */
function gathered(values: readonly Float32Array[]): Contribution {
  const starts: number[] = [];
  let end = 0;
  for (const { length } of values) {
    starts.push(end);
    end += align(length, LINE);
  }
  return {
    read(from, target) {
      const to = from + target.length;
      let i = starts.findLastIndex((start) => start <= from);
      for (let at = from; at < to; i++) {
        const own = values[i]!;
        const start = starts[i]!;
        const next = Math.min(to, start + align(own.length, LINE));
        const whole = Math.min(next, start + own.length);
        if (whole > at) target.set(own.subarray(at - start, whole - start), at - from);
        if (next > Math.max(at, whole)) target.fill(0, Math.max(at, whole) - from, next - from);
        at = next;
      }
    },
  };
}

function zeros(_from: number, target: Float32Array): void {
  target.fill(0);
}
