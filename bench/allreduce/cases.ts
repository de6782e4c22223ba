/** Which sizes and numbers of workers are measured, and which do not fit in memory. @module */
import { memoryLimit } from "../../runtime/machine/cgroup.ts";
import type { SkippedCase } from "./results.ts";

/** Sizes for so many workers. */
export interface CaseGroup {
  readonly workers: number;
  /** Bytes, ascending. */
  readonly sizes: readonly number[];
}

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
      const needed = bytesNeeded(count, bytes, gloo);
      if (needed <= USED * free) return true;
      const reason = `needs ${gigabytes(needed)} of memory: ${gigabytes(free)} are free`;
      skipped.push({ workers: count, bytes, reason });
      return false;
    });
    return { workers: count, sizes: fits };
  });
  return { groups: groups.filter((group) => group.sizes.length > 0), skipped };
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
