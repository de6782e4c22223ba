/**
 * The memory that the members of a group share.
 *
 * ```
 *   ticks  | member 0 | member 1 | ...                 raised whenever a member has done something
 *   cells  | slot 0: member 0 | member 1 | ... | slot 1: ...
 *   sums   | slot 0 | slot 1 | ...                     64-byte aligned
 *   parts  | member 0 | member 1 | ...                 "ring": a scratch of one unit for each member;
 *                                                      "parameterServer": each slot's part of each member but 0
 * ```
 * A member writes its own ticks and cells alone. The cells of a member for a slot: length of the sum under way,
 * sums released, then units done in each lane (see `algorithm.ts`). Counters wrap; they are compared by difference.
 * @module
 */
import { align } from "./dtype.ts";

/** Ways to add up. */
export const ALGORITHMS = ["ring", "parameterServer"] as const satisfies readonly AlgorithmName[];

/** Name of a way to add up. */
export type AlgorithmName = "ring" | "parameterServer";

/** What a group is made for. */
export interface GroupOptions {
  /** Members. */
  readonly size: number;
  /** The most elements that each slot's sums have. */
  readonly lengths: readonly number[];
  /** `ring`: every member adds up a share of each sum. `parameterServer`: member 0 adds up everything. */
  readonly algorithm: AlgorithmName;
  /** What is summed, for errors. */
  readonly name: string;
}

/** What the members of a group share; passes through `postMessage`. */
export interface GroupChannel extends GroupOptions {
  readonly memory: WebAssembly.Memory;
}

/** Most elements in a unit of work. 128 kB: one read and one written at a time stay in a core's own cache. */
export const UNIT_LENGTH = 32768;

const PAGE = 65536; // bytes in a page of WebAssembly memory
const MAX_PAGES = 65535;
const LINE = 16; // cells in a cache line
const LENGTH = 0; // cells of a member for a slot, by index
const RELEASED = 1;
const LANES = 2;

/**
 * Allocates what the members share.
 *
 * @throws {TypeError|RangeError} if an option makes no sense, or everything needs more than 4 GiB
 */
export function createGroup(options: GroupOptions): GroupChannel {
  const { size, lengths, algorithm, name } = options;
  if (!Number.isInteger(size) || size < 1) {
    throw new RangeError(`Cannot create group "${name}" of ${size} members: expected a positive integer`);
  }
  if (!ALGORITHMS.includes(algorithm)) {
    throw new TypeError(
      `Cannot create group "${name}" with algorithm "${algorithm}": expected one of ${ALGORITHMS.join(", ")}`,
    );
  }
  const wrong = lengths.find((length) => !Number.isSafeInteger(length) || length < 0);
  if (wrong !== undefined) {
    throw new RangeError(
      `Cannot create group "${name}" for sums of ${wrong} elements: expected an integer >= 0`,
    );
  }
  const { bytes } = new GroupLayout(options);
  const pages = Math.max(1, Math.ceil(bytes / PAGE));
  if (pages > MAX_PAGES) {
    const elements = lengths.reduce((sum, length) => sum + length, 0);
    throw new RangeError(
      `Cannot create group "${name}": ${algorithm} of ${size} members for ${lengths.length} sums of ` +
        `${elements} elements in all needs ${bytes} bytes, and shared memory ends at ${MAX_PAGES * PAGE}; ` +
        (algorithm === "ring" ? "use several groups, or a smaller model" : 'use "ring", or fewer members'),
    );
  }
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  return { size, lengths: [...lengths], algorithm, name, memory };
}

/** Where things lie in a group's memory: cells by index, values by address in bytes. */
export class GroupLayout {
  /** Bytes in all. */
  readonly bytes: number;
  readonly #size: number;
  readonly #lengths: readonly number[];
  readonly #stride: number; // cells of one member for one slot
  readonly #sums: number[] = [];
  readonly #parts: number[] = []; // of member 1, by slot
  readonly #scratch: number; // of member 0

  constructor({ size, lengths, algorithm }: GroupOptions) {
    this.#size = size;
    this.#lengths = lengths;
    this.#stride = align(LANES + size, LINE);
    let end = 4 * (size * LINE + lengths.length * size * this.#stride);
    const take = (elements: number) => {
      const address = end;
      end += align(4 * elements);
      return address;
    };
    for (const length of lengths) this.#sums.push(take(length));
    this.#scratch = end;
    if (algorithm === "ring") take(size * UNIT_LENGTH);
    else for (const length of lengths) this.#parts.push(take((size - 1) * align(length, LINE)));
    this.bytes = end;
  }

  tick(member: number): number {
    return member * LINE;
  }

  length(slot: number, member: number): number {
    return this.#cells(slot, member) + LENGTH;
  }

  released(slot: number, member: number): number {
    return this.#cells(slot, member) + RELEASED;
  }

  done(slot: number, member: number, lane: number): number {
    return this.#cells(slot, member) + LANES + lane;
  }

  sum(slot: number): number {
    return this.#sums[slot]!;
  }

  /** @param member not 0, whose part is the first in the sum */
  part(slot: number, member: number): number {
    return this.#parts[slot]! + 4 * (member - 1) * align(this.#lengths[slot]!, LINE);
  }

  scratch(member: number): number {
    return this.#scratch + 4 * member * UNIT_LENGTH;
  }

  #cells(slot: number, member: number): number {
    return this.#size * LINE + (slot * this.#size + member) * this.#stride;
  }
}
