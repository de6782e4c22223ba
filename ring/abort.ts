/** One flag in shared memory that every wait checks: when one worker fails, all stop. @module */

/** Thrown out of a wait when another worker has failed. */
export class AbortedError extends Error {
  override readonly name = "AbortedError";
  /** @param by Index of the worker that failed first. */
  constructor(readonly by: number) {
    super(`Stopped because worker ${by} failed`);
  }
}

/** The flag. Every holder of `shared` sees the same state. */
export class AbortFlag {
  readonly #cell: Int32Array;

  constructor(readonly shared: SharedArrayBuffer = new SharedArrayBuffer(4)) {
    this.#cell = new Int32Array(shared);
  }

  /** Raises the flag for worker `by`; answers false if another was first. */
  raise(by: number): boolean {
    return Atomics.compareExchange(this.#cell, 0, 0, by + 1) === 0;
  }

  /** Lowers the flag, so that a later run works. */
  clear(): void {
    Atomics.store(this.#cell, 0, 0);
  }

  /** Index of the worker that failed first, or -1. */
  get raisedBy(): number {
    return Atomics.load(this.#cell, 0) - 1;
  }

  /** @throws {AbortedError} if the flag is up. */
  check(): void {
    const by = this.raisedBy;
    if (by >= 0) throw new AbortedError(by);
  }
}
