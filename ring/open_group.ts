/** Opens one member's end of a group in shared memory. @module */
import type { AbortFlag } from "./abort.ts";
import type { Contribution, Group, Reduction } from "./group.ts";
import type { AlgorithmName, GroupChannel } from "./group_channel.ts";
import { GroupMemory } from "./group_memory.ts";
import type { Work } from "./algorithm.ts";
import { RingWork } from "./ring_work.ts";
import { ServerWork } from "./server_work.ts";
import { SharedSum } from "./shared_sum.ts";
import { waitUntil } from "./wait.ts";

const WORK: Readonly<Record<AlgorithmName, new (memory: GroupMemory, slot: number, length: number) => Work>> =
  {
    ring: RingWork,
    parameterServer: ServerWork,
  };

/** Looks at a cell before a wait sleeps, where every member has a core: sleeping and waking takes longer. */
const SPINS = 2000;

/**
 * Opens member `rank`'s end.
 *
 * @throws {RangeError} if there is no such member
 */
export function openGroup(channel: GroupChannel, rank: number, abort: AbortFlag): Group {
  if (!Number.isInteger(rank) || rank < 0 || rank >= channel.size) {
    throw new RangeError(
      `Cannot open member ${rank} of group "${channel.name}": expected an integer from 0 to ${
        channel.size - 1
      }`,
    );
  }
  return new SharedGroup(channel, rank, abort);
}

/** What a member knows of a slot. */
interface Slot {
  sum: SharedSum | undefined;
  units: number;
  sums: number;
}

class SharedGroup implements Group {
  readonly size: number;
  waitMs = 0;
  readonly #memory: GroupMemory;
  readonly #slots: Slot[];
  /** Sums that are not known to be whole, in the order in which they began. */
  readonly #underWay = new Set<SharedSum>();
  readonly #spins: number;

  constructor(readonly channel: GroupChannel, readonly rank: number, readonly abort: AbortFlag) {
    this.size = channel.size;
    this.#memory = new GroupMemory(channel, rank);
    const { layout } = this.#memory;
    this.#slots = channel.lengths.map((_, slot) => ({
      sum: undefined,
      units: this.#memory.get(layout.done(slot, rank, 0)),
      sums: this.#memory.get(layout.released(slot, rank)),
    }));
    this.#spins = channel.size <= navigator.hardwareConcurrency ? SPINS : 0;
  }

  reduce(slot: number, length: number, contribution: Contribution): Reduction {
    const state = this.#slot("reduce", slot);
    const most = this.channel.lengths[slot]!;
    if (!Number.isInteger(length) || length < 0 || length > most) {
      throw new RangeError(
        `Cannot sum ${length} elements in slot ${slot} of group "${this.channel.name}": expected an integer ` +
          `from 0 to ${most}, for which the slot was made`,
      );
    }
    if (state.sum) {
      throw new Error(
        `Cannot begin a sum in slot ${slot} of group "${this.channel.name}": release the one before first`,
      );
    }
    const memory = this.#memory;
    Atomics.store(memory.cells, memory.layout.length(slot, this.rank), length);
    const work = new WORK[this.channel.algorithm](memory, slot, length);
    const { units, sums } = state;
    const sum = new SharedSum(memory, work, slot, length, contribution, { units, sums });
    state.units = (units + work.units) | 0;
    state.sum = sum;
    this.#underWay.add(sum);
    return {
      advance: () => this.#advance(sum),
      finish: () => this.#finish(sum),
    };
  }

  release(slot: number): void {
    const state = this.#slot("release", slot);
    if (!state.sum || !state.sum.whole) {
      throw new Error(
        `Cannot release slot ${slot} of group "${this.channel.name}": it holds no finished sum`,
      );
    }
    this.#underWay.delete(state.sum);
    state.sum = undefined;
    state.sums = (state.sums + 1) | 0;
    this.#memory.publish(this.#memory.layout.released(slot, this.rank), state.sums);
  }

  reset(): void {
    const { layout, cells } = this.#memory;
    this.#underWay.clear();
    for (const [slot, state] of this.#slots.entries()) {
      state.sum = undefined;
      state.units = state.sums = 0;
      Atomics.store(cells, layout.released(slot, this.rank), 0);
      for (let lane = 0; lane < this.size; lane++) {
        Atomics.store(cells, layout.done(slot, this.rank, lane), 0);
      }
    }
  }

  #slot(action: string, slot: number): Slot {
    const state = this.#slots[slot];
    if (!state) {
      throw new RangeError(
        `Cannot ${action} slot ${slot} of group "${this.channel.name}": it has ${this.#slots.length} slots`,
      );
    }
    return state;
  }

  /** Every sum under way goes on, the oldest first, whichever is asked for: others may wait for it. */
  #advance(sum: SharedSum): boolean {
    for (const one of this.#underWay) {
      one.advance();
      if (one.whole) this.#underWay.delete(one);
    }
    return sum.whole;
  }

  #finish(sum: SharedSum): Float32Array<SharedArrayBuffer> {
    while (!this.#advance(sum)) this.#wait(sum);
    return this.#memory.values(this.#memory.layout.sum(sum.slot), sum.length);
  }

  /** Waits for the member that the oldest sum waits for. */
  #wait(sum: SharedSum): void {
    const { layout, cells } = this.#memory;
    const [oldest = sum] = this.#underWay;
    const { member, to } = oldest.waitsFor;
    const over = () => sum.whole || oldest.whole || this.#canAdvance() || oldest.waitsFor.member !== member;
    this.waitMs += waitUntil(cells, layout.tick(member), over, {
      abort: this.abort,
      spins: this.#spins,
      describe: () =>
        `Member ${this.rank} of group "${this.channel.name}" still waiting for member ${member} to ${to} ` +
        `in slot ${oldest.slot}`,
    });
  }

  #canAdvance(): boolean {
    for (const sum of this.#underWay) if (sum.ready) return true;
    return false;
  }
}
