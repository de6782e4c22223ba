/** Which sizes and numbers of workers are measured, and which do not fit in memory. @module */
import { memoryLimit } from "../../runtime/machine/cgroup.ts";
import type { SkippedCase } from "./results.ts";

/** Sizes for so many workers. */
export interface CaseGroup {
  readonly workers: number;
  /** Bytes, ascending. */
  readonly sizes: readonly number[];
}

/** Bytes of one memory of WebAssembly, less what a group's counters take. */
const SHARED = 2 ** 32 - 1e6;

/** Share of the memory that is free of which use is made. */
const USED = 0.8;

/**
 * For each number of workers the sizes that fit in memory, and what is left out.
 *
 * @param free bytes of memory
 */
export function planCases(
  workers: readonly number[],
  sizes: readonly number[],
  free: number,
  gloo: boolean,
): { groups: CaseGroup[]; skipped: SkippedCase[] } {
  const skipped: SkippedCase[] = [];
  const ascending = [...sizes].sort((a, b) => a - b);
  const groups = workers.map((count) => {
    const fits = ascending.filter((bytes) => {
      const reason = whyNot(count, bytes, free, gloo);
      if (reason !== undefined) skipped.push({ workers: count, bytes, reason });
      return reason === undefined;
    });
    return { workers: count, sizes: fits };
  });
  return { groups: groups.filter((group) => group.sizes.length > 0), skipped };
}

function whyNot(workers: number, bytes: number, free: number, gloo: boolean): string | undefined {
  const shared = workers * bytes; // the server's sum, and the parts that are handed over to it
  if (shared > SHARED) return `needs ${gigabytes(shared)} of shared memory: ${gigabytes(SHARED)} is the most`;
  const needed = bytesNeeded(workers, bytes, gloo);
  if (needed <= USED * free) return undefined;
  return `needs ${gigabytes(needed)} of memory: ${gigabytes(free)} are free`;
}

/**
 * Bytes that a case takes: each worker's own part and the target of its memcpy, the ring's sum, the server's sum
 * and the parts handed over, and in each process of gloo's a tensor and half as much of buffers.
 */
export function bytesNeeded(workers: number, bytes: number, gloo: boolean): number {
  return bytes * (2 * workers + 1 + workers + (gloo ? 1.5 * workers : 0));
}

/** Bytes of memory that are free for this process. */
export function freeMemory(): number {
  return Math.min(Deno.systemMemoryInfo().available, memoryLimit() ?? Infinity);
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
