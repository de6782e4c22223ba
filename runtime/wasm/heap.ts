/** The memory of the backend "wasm": what of it is taken, and an error where it is full. @module */
import { tf } from "../../deps.ts";
import type { WasmBackend } from "./backend.ts";

/** Most bytes that WebAssembly's 32-bit addresses reach, less the last page, which the allocator leaves. */
export const HEAP_LIMIT = 2 ** 32 - 2 ** 16;

/** Counts what TensorFlow.js allocates. What its kernels allocate within WebAssembly is not seen. */
export class Heap {
  /** Bytes taken now. */
  taken = 0;
  readonly #sizes = new Map<number, number>();
  #peak = 0;

  /**
   * @param limit bytes that may be used: fewer than there are is for tests alone
   */
  constructor({ wasm }: WasmBackend, readonly limit: number = HEAP_LIMIT) {
    tf.scalar(0).dispose(); // the module puts the real functions in place at their first call
    const allocate = wasm._malloc.bind(wasm);
    const free = wasm._free.bind(wasm);
    wasm._malloc = (bytes) => {
      const address = allocate(bytes) >>> 0;
      const end = address + bytes;
      // Where memory is full, the backend would go on at address 0 or beyond the end.
      if (bytes > 0 && (address === 0 || end > wasm.HEAPU8.length || end > limit)) {
        if (address !== 0) free(address);
        throw new RangeError(
          `Cannot allocate ${bytes} bytes on engine "wasm": its memory, 4 GiB at most, is full; ` +
            `use more micro-batches, or engine "tensorflow"`,
        );
      }
      this.#sizes.set(address, bytes);
      this.taken += bytes;
      if (this.taken > this.#peak) this.#peak = this.taken;
      return address;
    };
    wasm._free = (address) => {
      this.taken -= this.#sizes.get(address >>> 0) ?? 0;
      this.#sizes.delete(address >>> 0);
      free(address);
    };
  }

  /** The most bytes that were taken since it was last asked. */
  takePeak(): number {
    const peak = this.#peak;
    this.#peak = this.taken;
    return peak;
  }
}
