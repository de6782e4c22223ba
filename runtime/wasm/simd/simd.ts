/** Stagger's own WebAssembly kernels, in the memory of tfjs's backend "wasm". @module */
import type { tf } from "../../../deps.ts";
import { sizeOf } from "../../../ring/dtype.ts";
import { alias, type WasmBackend } from "../backend.ts";
import { type Product, writeJob } from "./job.ts";
import { MODULE } from "./module.ts";

/** What the module exports; `../assembly/` says what the arguments mean. Addresses are in bytes. */
export interface SimdExports {
  multiply(job: number): void;
  workspaceBytes(): number;
  batchNorm(
    x: number,
    rows: number,
    channels: number,
    scale: number,
    offset: number,
    epsilon: number,
    y: number,
    mean: number,
    variance: number,
    inverse: number,
    partial: number,
  ): void;
  batchNormGradient(
    dy: number,
    x: number,
    rows: number,
    channels: number,
    scale: number,
    mean: number,
    inverse: number,
    dx: number,
    dScale: number,
    dOffset: number,
    partial: number,
  ): void;
  reluGradient(dy: number, y: number, length: number, dx: number): void;
  maxPoolGradient(
    dy: number,
    x: number,
    y: number,
    dx: number,
    batch: number,
    height: number,
    width: number,
    channels: number,
    rows: number,
    columns: number,
    filterHeight: number,
    filterWidth: number,
    strideY: number,
    strideX: number,
    top: number,
    left: number,
  ): void;
  depthwiseFilterGradient(
    x: number,
    dy: number,
    gradient: number,
    partial: number,
    batch: number,
    height: number,
    width: number,
    channels: number,
    rows: number,
    columns: number,
    filterHeight: number,
    filterWidth: number,
    strideY: number,
    strideX: number,
    dilationY: number,
    dilationX: number,
    top: number,
    left: number,
  ): void;
  nearestGradient(
    dy: number,
    rows: number,
    columns: number,
    rowOf: number,
    columnOf: number,
    dx: number,
    width: number,
    pixel: number,
  ): void;
  bilinearGradient: SimdExports["nearestGradient"];
  copyRows(
    from: number,
    fromStride: number,
    to: number,
    toStride: number,
    bytes: number,
    rows: number,
  ): void;
  gatherRows(from: number, indices: number, count: number, to: number, bytes: number): void;
  addRows(from: number, indices: number, count: number, to: number, rows: number, bytes: number): void;
  compare(
    op: number,
    a: number,
    aStep: number,
    b: number,
    bStep: number,
    length: number,
    to: number,
  ): void;
  extreme: SimdExports["compare"];
  select(condition: number, a: number, b: number, length: number, to: number): void;
  truthToFloat(from: number, length: number, to: number): void;
  tanh(x: number, length: number, y: number): void;
  momentumUpdate(
    weight: number,
    gradient: number,
    velocity: number,
    length: number,
    rate: number,
    momentum: number,
    nesterov: number,
    decay: number,
    newWeight: number,
    newVelocity: number,
  ): void;
  adamUpdate(
    weight: number,
    gradient: number,
    first: number,
    second: number,
    length: number,
    rate: number,
    beta1: number,
    rest1: number,
    beta2: number,
    rest2: number,
    correction1: number,
    correction2: number,
    epsilon: number,
    decay: number,
    keep: number,
    newWeight: number,
    newFirst: number,
    newSecond: number,
  ): void;
  philoxUniform(to: number, count: number, key: bigint, low: bigint, high: bigint): void;
}

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
