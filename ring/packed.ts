/** Several arrays in one sum, each from a cache line on, so that each may be read where it lies. @module */
import { align } from "./dtype.ts";

const LINE = 16; // float32 in 64 bytes

/** Where each of these begins, and the elements of all. */
export function packed(
  lengths: readonly number[],
): { readonly starts: readonly number[]; readonly length: number } {
  const starts: number[] = [];
  let end = 0;
  for (const length of lengths) {
    starts.push(end);
    end += align(length, LINE);
  }
  return { starts, length: end };
}
