/** Blocking waits on shared cells, in bounded slices so that an abort is seen at once. @module */
import type { AbortFlag } from "./abort.ts";

/** Longest sleep between two looks at the abort flag, in milliseconds. */
const SLICE_MS = 50;

/** After this long, a wait says once who waits for whom, in milliseconds. */
const STALL_MS = 60_000;

/** What a wait needs beside its cell. */
export interface WaitOptions {
  readonly abort: AbortFlag;
  /** Who waits for whom and for what, for the line printed when it takes too long. */
  describe(): string;
  /** Where a stall is reported. Default: standard error. */
  report?(line: string): void;
  /** Milliseconds after which a stall is reported. Default: 60,000. */
  stallMs?: number;
  /** How often to look at the cell before sleeping. Default: once. */
  spins?: number;
}

/**
 * Sleeps until `ready(value of cells[index])`. The cell's writer must call `Atomics.notify`.
 *
 * @returns milliseconds waited; 0 if it was ready at once
 * @throws {AbortedError} when the abort flag goes up
 */
export function waitUntil(
  cells: Int32Array,
  index: number,
  ready: (value: number) => boolean,
  options: WaitOptions,
): number {
  let value = Atomics.load(cells, index);
  if (ready(value)) return 0;
  const start = performance.now();
  for (let spin = options.spins ?? 0; spin > 0; spin--) {
    pause();
    value = Atomics.load(cells, index);
    if (ready(value)) return performance.now() - start;
  }
  const stallMs = options.stallMs ?? STALL_MS;
  let stalled = false;
  while (!ready(value)) {
    options.abort.check();
    Atomics.wait(cells, index, value, SLICE_MS);
    value = Atomics.load(cells, index);
    if (!stalled && performance.now() - start > stallMs) {
      stalled = true;
      (options.report ?? console.error)(`${options.describe()} for ${stallMs / 1000} s`);
    }
  }
  return performance.now() - start;
}

/** Lets the core's other thread, or nothing, go on for a moment. */
const pause = (Atomics as { pause?: () => void }).pause ?? (() => {});
