/**
 * A parameter server in shared memory: member 0 adds up everything. The others hand over their whole parts, each
 * in a place of its own; all read the sum. The server reads as many parts as there are members, one after the
 * other, so that its time grows with them.
 *
 * Member m has one lane, in which it hands over; the server has one for each part, its own first.
 * @module
 */
import type { Place, Work } from "./algorithm.ts";
import type { Contribution } from "./group.ts";
import { UNIT_LENGTH } from "./group_channel.ts";
import type { GroupMemory } from "./group_memory.ts";

const SERVER = 0;

/** One member's work on a sum of `length` elements. */
export class ServerWork implements Work {
  readonly units: number;
  readonly lanes: number;
  readonly last: readonly Place[];

  constructor(readonly memory: GroupMemory, readonly slot: number, readonly length: number) {
    const { rank, channel: { size } } = memory;
    this.units = Math.ceil(length / UNIT_LENGTH);
    this.lanes = rank === SERVER ? size : 1;
    this.last = [{ member: SERVER, lane: size - 1 }];
  }

  before(lane: number): Place | undefined {
    return lane === 0 ? undefined : { member: lane, lane: 0 };
  }

  run(lane: number, unit: number, contribution: Contribution): void {
    const { memory, slot } = this;
    const { layout, rank } = memory;
    const from = unit * UNIT_LENGTH;
    const count = Math.min(UNIT_LENGTH, this.length - from);
    const sum = layout.sum(slot) + 4 * from;
    if (lane > 0) return memory.add(sum, layout.part(slot, lane) + 4 * from, count);
    const target = rank === SERVER ? sum : layout.part(slot, rank) + 4 * from;
    contribution.read(from, memory.values(target, count));
  }
}
