/** Stagger's own WebAssembly kernels, in the memory of tfjs's backend "wasm". @module */
import type { tf } from "../../../deps.ts";
import { sizeOf } from "../../../ring/dtype.ts";
import { alias, type WasmBackend } from "../backend.ts";
import type { SimdExports } from "./exports.ts";
import { type Product, writeJob } from "./job.ts";
import { MODULE } from "./module.ts";

/** The kernels on one backend. */
export class Simd {
  readonly exports: SimdExports;
  readonly #backend: WasmBackend;
  readonly #workspace: number;
  #scratch = { address: 0, bytes: 0 };
  /** What the next product of its size is added to. */
  #sum: tf.Tensor | undefined;

  private constructor(backend: WasmBackend, module: WebAssembly.Module) {
    const { memory } = backend.wasm.asm;
    this.#backend = backend;
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    this.exports = exports as unknown as SimdExports;
    this.#workspace = this.#allocate(this.exports.workspaceBytes());
  }

  /** @returns undefined where WebAssembly lacks what they need: 128-bit vectors, relaxed ones among them */
  static start(backend: WasmBackend): Simd | undefined {
    const binary = Uint8Array.fromBase64(MODULE);
    if (!WebAssembly.validate(binary)) return undefined;
    return new Simd(backend, new WebAssembly.Module(binary));
  }

  /**
   * Adds the first product in `body` that makes as many values as `sum` has to it, in place. No other tensor may
   * share what it holds.
   *
   * @returns what `body` made, and whether there was one
   */
  adding<T>(sum: tf.Tensor, body: () => T): { made: T; added: boolean } {
    this.#sum = sum;
    try {
      const made = body();
      return { made, added: this.#sum === undefined };
    } finally {
      this.#sum = undefined;
    }
  }

  /** Where a product goes that may be added to a sum, and whether it is. */
  target(shape: number[]): { out: tf.TensorInfo; add: boolean } {
    const sum = this.#sum;
    if (!sum || sum.size !== sizeOf(shape)) {
      return { out: this.#backend.makeOutput(shape, "float32"), add: false };
    }
    this.#sum = undefined;
    return { out: alias(this.#backend, sum, shape), add: true };
  }

  /** Computes a product of matrices, or a convolution. */
  multiply(product: Product): void {
    const job = writeJob(product, this.#workspace, (bytes) => this.scratch(bytes));
    const address = this.scratch(job.byteLength);
    this.write(address, job);
    this.exports.multiply(address);
  }

  /** Writes integers to the backend's memory. */
  write(address: number, values: Int32Array): void {
    new Int32Array(this.#backend.wasm.asm.memory.buffer, address, values.length).set(values);
  }

  /** Room for `bytes` in the backend's memory, until the next call of any kernel. */
  scratch(bytes: number): number {
    if (bytes > this.#scratch.bytes) {
      if (this.#scratch.bytes > 0) this.#backend.wasm._free(this.#scratch.address);
      this.#scratch = { address: this.#allocate(2 * bytes), bytes: 2 * bytes };
    }
    return this.#scratch.address;
  }

  #allocate(bytes: number): number {
    return this.#backend.wasm._malloc(bytes) >>> 0;
  }
}
