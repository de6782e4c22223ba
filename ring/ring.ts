/**
 * A single-producer single-consumer ring of slots in shared memory.
 *
 * ```
 *   cells  | head ..64 B.. tail ..64 B..  |
 *   slot 0 | header 128 B | payload, 64-byte aligned |
 *   slot 1 | ...
 * ```
 * `head` counts messages sent, `tail` slots given back. A receiver may hold several slots: a received
 * payload is used in place and its slot released when the last reader is done.
 * @module
 */
import type { AbortFlag } from "./abort.ts";
import { align, byteLengthOf, type DType, type TensorSpec } from "./dtype.ts";
import {
  HEADER_BYTES,
  MessageError,
  type MessageHeader,
  type MessageKey,
  readHeader,
  writeHeader,
} from "./header.ts";
import { waitUntil } from "./wait.ts";

const HEAD = 0; // cell indices, 64 bytes apart so that the two sides do not share a cache line
const TAIL = 16;
const SLOTS_OFFSET = 128;
const PAGE = 65536; // bytes in a page of WebAssembly memory
const MAX_PAGES = 65535;
const MAX_COUNT = 2 ** 30; // head and tail stay below this

/** What both ends of a ring share; passes through `postMessage`. */
export interface RingChannel {
  readonly memory: WebAssembly.Memory;
  readonly capacity: number;
  /** Bytes of payload that one slot holds. */
  readonly slotBytes: number;
  /** `head` and `tail` wrap here, a multiple of `capacity`, so that slots stay in order across the wrap. */
  readonly period: number;
  /** Who sends what to whom, for errors. */
  readonly name: string;
  /** Which of the tensors that cross here it carries: what its messages are numbered by. */
  readonly tensor: number;
}

/** Counters of one end, since it was opened. */
export interface RingCounters {
  /** Sent or received. */
  messages: number;
  /** Of payload. */
  bytes: number;
  /** How often this end had to wait. */
  waits: number;
  /** How long, in milliseconds. */
  waitMs: number;
}

/** A message in its slot. `payload` is valid until the slot is released. */
export interface Message extends MessageHeader {
  readonly payload: Uint8Array<SharedArrayBuffer>;
  /** The receiver's own number of this message, to give its slot back. */
  readonly sequence: number;
}

/**
 * Allocates a ring of `capacity` slots of `slotBytes` each.
 *
 * @throws {RangeError} if capacity or slot size is no positive integer, or both need more than 4 GiB
 */
export function createRing(
  options: { capacity: number; slotBytes: number; name: string; tensor?: number },
): RingChannel {
  const { capacity, slotBytes, name, tensor = 0 } = options;
  if (!Number.isInteger(capacity) || capacity < 1) {
    throw new RangeError(`Cannot create ring "${name}" of capacity ${capacity}: expected a positive integer`);
  }
  if (!Number.isInteger(slotBytes) || slotBytes < 0) {
    throw new RangeError(
      `Cannot create ring "${name}" with slots of ${slotBytes} bytes: expected an integer >= 0`,
    );
  }
  const bytes = SLOTS_OFFSET + capacity * stride(slotBytes);
  const pages = Math.ceil(bytes / PAGE);
  if (pages > MAX_PAGES) {
    throw new RangeError(
      `Cannot create ring "${name}": ${capacity} slots of ${slotBytes} bytes need ${bytes} bytes, ` +
        `and shared memory ends at ${MAX_PAGES * PAGE}; use smaller micro-batches or fewer slots`,
    );
  }
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  return { memory, capacity, slotBytes, period: capacity * Math.floor(MAX_COUNT / capacity), name, tensor };
}

/** The side that sends. Blocks while the ring is full. */
export class RingSender {
  readonly #end: RingEnd;
  constructor(channel: RingChannel, abort: AbortFlag) {
    this.#end = new RingEnd(channel, abort);
  }

  get channel(): RingChannel {
    return this.#end.channel;
  }

  get counters(): Readonly<RingCounters> {
    return this.#end.counters;
  }

  /** Slots free right now. */
  get free(): number {
    const end = this.#end;
    return end.channel.capacity - end.distance(Atomics.load(end.cells, TAIL), Atomics.load(end.cells, HEAD));
  }

  /**
   * Sends one tensor: waits for a free slot, lets `write` fill its payload, publishes it.
   *
   * @param byteLength needed for dtype "string" alone, whose elements have no fixed size
   * @throws {RangeError} if the tensor is larger than a slot
   * @throws {AbortedError} when the abort flag goes up
   */
  send(
    message: MessageKey & TensorSpec & { byteLength?: number },
    write: (payload: Uint8Array<SharedArrayBuffer>) => void,
  ): void {
    const end = this.#end;
    const { cells, channel, counters } = end;
    const byteLength = message.byteLength ?? byteLengthOf(message);
    if (byteLength > channel.slotBytes) {
      throw new RangeError(
        `Cannot send ${byteLength} bytes (${message.dtype} [${message.shape}]) through ring "${channel.name}": ` +
          `its slots hold ${channel.slotBytes} bytes`,
      );
    }
    const head = Atomics.load(cells, HEAD);
    end.wait(TAIL, (tail) => end.distance(tail, head) < channel.capacity, message, "room in");
    const offset = end.slotOffset(head);
    writeHeader(end.buffer, offset, { ...message, byteLength });
    write(new Uint8Array(end.buffer, offset + HEADER_BYTES, byteLength));
    end.set(HEAD, end.after(head, 1));
    counters.messages++;
    counters.bytes += byteLength;
  }
}

/** The side that receives. Blocks while the ring is empty. */
export class RingReceiver {
  readonly #end: RingEnd;
  #next: number;
  /** Released before an older slot was: they go back when that one does. */
  readonly #early = new Set<number>();

  constructor(channel: RingChannel, abort: AbortFlag) {
    this.#end = new RingEnd(channel, abort);
    this.#next = Atomics.load(this.#end.cells, TAIL);
  }

  get channel(): RingChannel {
    return this.#end.channel;
  }

  get counters(): Readonly<RingCounters> {
    return this.#end.counters;
  }

  /** Messages waiting, those held by this receiver not counted. */
  get pending(): number {
    return this.#end.distance(this.#next, Atomics.load(this.#end.cells, HEAD));
  }

  /**
   * Waits for the next message and checks that it is the expected one.
   *
   * @param dtype when given, the dtype that the message must have
   * @throws {MessageError} if it is for another step, micro-batch or tensor, or of another dtype
   * @throws {AbortedError} when the abort flag goes up
   */
  receive(expected: MessageKey & { dtype?: DType }): Message {
    const end = this.#end;
    const sequence = this.#next;
    end.wait(HEAD, (head) => head !== sequence, expected, "");
    const offset = end.slotOffset(sequence);
    const header = readHeader(end.buffer, offset);
    for (const key of ["step", "microBatch", "tensor", "dtype"] as const) {
      if (expected[key] !== undefined && header[key] !== expected[key]) {
        throw new MessageError(
          `Received a message of ${key} ${header[key]} from ring "${end.channel.name}": expected ${
            expected[key]
          }`,
        );
      }
    }
    this.#next = end.after(sequence, 1);
    end.counters.messages++;
    end.counters.bytes += header.byteLength;
    const payload = new Uint8Array(end.buffer, offset + HEADER_BYTES, header.byteLength);
    return { ...header, payload, sequence };
  }

  /** Gives the slot of a received message back to the sender. */
  release(sequence: number): void {
    const end = this.#end;
    const tail = Atomics.load(end.cells, TAIL);
    if (end.distance(tail, sequence) >= end.distance(tail, this.#next) || this.#early.has(sequence)) {
      throw new RangeError(
        `Cannot release message ${sequence} of ring "${this.channel.name}": it is not held`,
      );
    }
    this.#early.add(sequence);
    let free = 0;
    while (this.#early.delete(end.after(tail, free))) free++;
    if (free > 0) end.set(TAIL, end.after(tail, free));
  }

  /** Drops everything sent so far, held or not: for the start of a run after a failed one. */
  reset(): void {
    this.#early.clear();
    this.#next = Atomics.load(this.#end.cells, HEAD);
    this.#end.set(TAIL, this.#next);
  }
}

/** What both ends do alike. */
class RingEnd {
  readonly buffer: SharedArrayBuffer;
  readonly cells: Int32Array;
  readonly counters: RingCounters = { messages: 0, bytes: 0, waits: 0, waitMs: 0 };

  constructor(readonly channel: RingChannel, readonly abort: AbortFlag) {
    this.buffer = channel.memory.buffer as unknown as SharedArrayBuffer;
    this.cells = new Int32Array(this.buffer, 0, SLOTS_OFFSET / 4);
  }

  slotOffset(sequence: number): number {
    return SLOTS_OFFSET + (sequence % this.channel.capacity) * stride(this.channel.slotBytes);
  }

  after(sequence: number, count: number): number {
    return (sequence + count) % this.channel.period;
  }

  distance(from: number, to: number): number {
    return (to - from + this.channel.period) % this.channel.period;
  }

  /** Each cell has one writer, so a store is enough. */
  set(cell: number, value: number): void {
    Atomics.store(this.cells, cell, value);
    Atomics.notify(this.cells, cell);
  }

  wait(cell: number, ready: (value: number) => boolean, key: MessageKey, what: string): void {
    const { counters, channel } = this;
    const waited = waitUntil(this.cells, cell, ready, {
      abort: this.abort,
      describe: () =>
        `Still waiting for ${what ? what + " " : ""}ring "${channel.name}" ` +
        `(step ${key.step}, micro-batch ${key.microBatch}, tensor ${key.tensor})`,
    });
    if (waited > 0) {
      counters.waits++;
      counters.waitMs += waited;
    }
  }
}

function stride(slotBytes: number): number {
  return HEADER_BYTES + align(slotBytes);
}
