/**
 * Reduce-scatter around a ring (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", 2009) in memory that all share, so that the all-gather costs nothing.
 *
 * The sum is cut into as many chunks as members. Lane s is a step: member w adds its part of chunk w - s, which
 * its left neighbour did in the step before. With three members:
 *
 * ```
 *            step 0    step 1    step 2
 *   member 0 chunk 0   chunk 2   chunk 1   (whole)
 *   member 1 chunk 1   chunk 0   chunk 2   (whole)
 *   member 2 chunk 2   chunk 1   chunk 0   (whole)
 * ```
 * Step 0 copies the part into the sum's place. Chunks are cut into units, so that neighbours work in a stream
 * and what one has just written is still in a cache when the next one adds to it.
 * @module
 */
import type { Place, Work } from "./algorithm.ts";
import { align } from "./dtype.ts";
import type { Contribution } from "./group.ts";
import { UNIT_LENGTH } from "./group_channel.ts";
import type { GroupMemory } from "./group_memory.ts";

const LINE = 16; // float32 in 64 bytes

/** One member's work on a sum of `length` elements. */
export class RingWork implements Work {
  readonly units: number;
  readonly lanes: number;
  readonly last: readonly Place[];
  readonly #left: number;
  readonly #chunk: number; // elements
  readonly #unit: number; // elements

  constructor(readonly memory: GroupMemory, readonly slot: number, readonly length: number) {
    const { rank, channel: { size } } = memory;
    this.#left = (rank + size - 1) % size;
    this.#chunk = align(Math.ceil(length / size), LINE);
    this.units = Math.ceil(this.#chunk / UNIT_LENGTH);
    this.#unit = align(Math.ceil(this.#chunk / Math.max(1, this.units)), LINE);
    this.lanes = size;
    this.last = Array.from({ length: size }, (_, member) => ({ member, lane: size - 1 }));
  }

  before(lane: number): Place | undefined {
    return lane === 0 ? undefined : { member: this.#left, lane: lane - 1 };
  }

  run(lane: number, unit: number, contribution: Contribution): void {
    const { memory, length, lanes } = this;
    const chunk = (memory.rank - lane + lanes) % lanes;
    const end = Math.min(length, (chunk + 1) * this.#chunk, chunk * this.#chunk + (unit + 1) * this.#unit);
    const from = chunk * this.#chunk + unit * this.#unit;
    if (from >= end) return;
    const sum = memory.layout.sum(this.slot) + 4 * from;
    if (lane === 0) return contribution.read(from, memory.values(sum, end - from));
    const scratch = memory.layout.scratch(memory.rank);
    contribution.read(from, memory.values(scratch, end - from));
    memory.add(sum, scratch, end - from);
  }
}
