/** A sum under way in shared memory, as one member sees it. @module */
import type { Work } from "./algorithm.ts";
import type { Contribution } from "./group.ts";
import type { GroupMemory } from "./group_memory.ts";

/** Where a slot's counters stood when its sum began: they go on from sum to sum. */
export interface Start {
  /** Units done in each lane, by every member. */
  readonly units: number;
  /** Sums released, by every member once it may be written. */
  readonly sums: number;
}

/** One member's end of a sum. */
export class SharedSum {
  readonly #done: number[]; // units, by lane
  #mayWrite = false;
  #whole = false;

  constructor(
    readonly memory: GroupMemory,
    readonly work: Work,
    readonly slot: number,
    readonly length: number,
    readonly contribution: Contribution,
    readonly start: Start,
  ) {
    this.#done = new Array(work.lanes).fill(0);
  }

  /** Does what can be done without waiting, the furthest first: it is in a cache still. */
  advance(): void {
    for (let lane = this.#next(); lane >= 0; lane = this.#next()) {
      const unit = this.#done[lane]!;
      this.work.run(lane, unit, this.contribution);
      this.#done[lane] = unit + 1;
      const { memory, slot, start } = this;
      memory.publish(memory.layout.done(slot, memory.rank, lane), (start.units + unit + 1) | 0);
    }
  }

  /** Whether every member's part is in. */
  get whole(): boolean {
    this.#whole ||= this.work.last.every(({ member, lane }) => this.#reached(member, lane, this.work.units));
    return this.#whole;
  }

  /** Whether `advance` would do something. */
  get ready(): boolean {
    return this.#next() >= 0;
  }

  /** The member that this one waits for when it can do no more. */
  get waitsFor(): { member: number; to: string } {
    const { work } = this;
    const holder = this.#mayWrite ? -1 : this.#holder(); // asked once: it may release meanwhile
    if (holder >= 0) return { member: holder, to: "release the sum before" };
    for (let lane = 1; lane < work.lanes; lane++) {
      const before = work.before(lane);
      if (before && this.#done[lane]! < this.#done[lane - 1]! && !this.#isReady(lane)) {
        return { member: before.member, to: "add its part" };
      }
    }
    const late = work.last.find(({ member, lane }) => !this.#reached(member, lane, work.units));
    return { member: late?.member ?? this.memory.rank, to: "finish" };
  }

  /** The furthest lane with a unit that can be done now, or -1. */
  #next(): number {
    const { units, lanes } = this.work;
    for (let lane = lanes - 1; lane > 0; lane--) {
      if (this.#done[lane]! < this.#done[lane - 1]! && this.#isReady(lane)) return lane;
    }
    return this.#done[0]! < units && this.#checkRoom() ? 0 : -1;
  }

  #isReady(lane: number): boolean {
    const before = this.work.before(lane);
    if (!before) return true;
    const unit = this.#done[lane]!;
    if (!this.#reached(before.member, before.lane, unit + 1)) return false;
    if (unit === 0) this.#checkLength(before.member);
    return true;
  }

  #reached(member: number, lane: number, units: number): boolean {
    const { memory, slot, start } = this;
    return ((memory.get(memory.layout.done(slot, member, lane)) - start.units - units) | 0) >= 0;
  }

  /** Whether every member has released the sum before. */
  #checkRoom(): boolean {
    this.#mayWrite ||= this.#holder() < 0;
    return this.#mayWrite;
  }

  /** A member that has not released the sum before, or -1. */
  #holder(): number {
    const { memory, slot, start } = this;
    for (let member = 0; member < memory.channel.size; member++) {
      if (((memory.get(memory.layout.released(slot, member)) - start.sums) | 0) < 0) return member;
    }
    return -1;
  }

  #checkLength(member: number): void {
    const { memory, slot, length } = this;
    const theirs = memory.get(memory.layout.length(slot, member)) >>> 0;
    if (theirs !== length) {
      throw new RangeError(
        `Cannot sum ${length} elements in slot ${slot} of group "${memory.channel.name}": member ${member} ` +
          `sums ${theirs}; all members must give the same length`,
      );
    }
  }
}
