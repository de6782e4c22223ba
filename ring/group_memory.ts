/** One member's view of the memory that its group shares: counters, values, and the addition. @module */
import { type GroupChannel, GroupLayout } from "./group_channel.ts";
import { MODULE } from "./simd/module.ts";

/** See the module's description. Addresses are in bytes. */
export class GroupMemory {
  readonly layout: GroupLayout;
  readonly cells: Int32Array<SharedArrayBuffer>;
  /** `sum[i] += part[i]`; both addresses are aligned to 64 bytes. */
  readonly add: (sum: number, part: number, length: number) => void;
  readonly #buffer: SharedArrayBuffer;
  readonly #tick: number;

  constructor(readonly channel: GroupChannel, readonly rank: number) {
    this.layout = new GroupLayout(channel);
    this.#buffer = channel.memory.buffer as unknown as SharedArrayBuffer;
    this.cells = new Int32Array(this.#buffer);
    this.#tick = this.layout.tick(rank);
    const module = new WebAssembly.Module(Uint8Array.fromBase64(MODULE));
    const { exports } = new WebAssembly.Instance(module, { env: { memory: channel.memory } });
    this.add = exports.add as GroupMemory["add"];
  }

  values(address: number, length: number): Float32Array<SharedArrayBuffer> {
    return new Float32Array(this.#buffer, address, length);
  }

  get(cell: number): number {
    return Atomics.load(this.cells, cell);
  }

  /** Sets a cell of this member and wakes those who wait for it. */
  publish(cell: number, value: number): void {
    Atomics.store(this.cells, cell, value);
    Atomics.add(this.cells, this.#tick, 1);
    Atomics.notify(this.cells, this.#tick);
  }
}
