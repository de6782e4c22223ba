/** What members contribute to sums: any of them can tell what the others do. @module */
import type { Contribution } from "../../ring/group.ts";

/** Whole numbers, whose sums are exact, or fractions, whose sums depend on the order. */
export type Values = "whole" | "fractions";

/** Element `i` of member `rank`'s part of sum number `number`. */
export function valueOf(values: Values, number: number, rank: number, i: number): number {
  const whole = (Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(number * 31 + rank + 1, 0x85ebca6b)) >>> 20;
  return values === "whole" ? whole : whole / 4096 * 10 ** (whole % 7 - 3);
}

/** Its part, read as an engine's gradient is. */
export function contribution(values: Values, number: number, rank: number): Contribution {
  return {
    read(from, target) {
      for (let i = 0; i < target.length; i++) target[i] = valueOf(values, number, rank, from + i);
    },
  };
}

/** Throws unless `sum` is that of all members' parts: exactly, or to within rounding. */
export function checkSum(values: Values, number: number, size: number, sum: Float32Array): void {
  for (let i = 0; i < sum.length; i++) {
    let expected = 0;
    for (let rank = 0; rank < size; rank++) expected += Math.fround(valueOf(values, number, rank, i));
    const error = Math.abs(sum[i]! - expected);
    if (!(error <= (values === "whole" ? 0 : 1e-6 * size * expected))) {
      throw new Error(`Sum ${number}, element ${i} of ${sum.length}: ${sum[i]} instead of ${expected}`);
    }
  }
}

/** A number that differs where any bit of `values` does: FNV-1a over words. */
export function hash(values: Float32Array): number {
  let hash = 0x811c9dc5;
  for (const word of new Int32Array(values.buffer, values.byteOffset, values.length)) {
    hash = Math.imul(hash ^ word, 0x01000193);
  }
  return hash >>> 0;
}
