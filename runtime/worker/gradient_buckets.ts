/** A replica's gradients on their way to the sums of all replicas, a bucket for each segment. @module */
import type { Contribution, Group, Reduction } from "../../ring/group.ts";
import { packed } from "../../ring/packed.ts";
import type { OpenSums, SegmentExecutor } from "../../stages/executor.ts";

/** A bucket under way. */
interface Pending {
  readonly segment: number;
  readonly open: OpenSums;
  /** Where each of its sums begins. */
  readonly starts: readonly number[];
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
    const { starts, length } = packed(open.values.map(({ length }) => length));
    const contribution = contributes ? gathered(open.values, starts) : { read: zeros };
    const reduction = this.group.reduce(segment, length, contribution);
    this.#pending.push({ segment, open, starts, reduction });
    reduction.advance(); // as far as the other replicas have come, and so does every bucket before it
  }

  /** Waits until all buckets are whole, and gives the segments the sums in place. */
  finish(): void {
    for (const { segment, open, starts, reduction } of this.#pending) {
      const sums = reduction.finish();
      this.#finished.push(segment);
      this.segments[segment]!.useSums(
        open.values.map(({ length }, i) => sums.subarray(starts[i]!, starts[i]! + length)),
      );
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

/** Several arrays as one, with zeros between them. */
function gathered(values: readonly Float32Array[], starts: readonly number[]): Contribution {
  return {
    read(from, target) {
      const to = from + target.length;
      let i = starts.findLastIndex((start) => start <= from);
      for (let at = from; at < to; i++) {
        const [own, start] = [values[i]!, starts[i]!];
        const next = Math.min(to, starts[i + 1] ?? to);
        const end = Math.max(at, Math.min(next, start + own.length)); // of its own values
        target.set(own.subarray(at - start, end - start), at - from);
        target.fill(0, end - from, next - from);
        at = next;
      }
    },
  };
}

function zeros(_from: number, target: Float32Array): void {
  target.fill(0);
}
