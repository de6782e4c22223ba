/** Messages whose content both sides of a ring can make from their number. @module */
import { BYTES_PER_ELEMENT, type DType, DTYPES } from "../../ring/dtype.ts";

/** Where a message of the stress test belongs, and what it carries. */
export function messageOf(number: number, slotBytes: number) {
  const random = draws(number);
  const dtype: DType = DTYPES[random() % 4]!; // not "string"
  const length = random() % (slotBytes / BYTES_PER_ELEMENT[dtype] + 1);
  return {
    step: number >> 6,
    microBatch: number & 63,
    tensor: random() % 5,
    dtype,
    shape: [Math.floor(length)],
  };
}

/** Fills a payload, or answers whether it is as it was filled. */
export function fill(number: number, payload: Uint8Array): void {
  const random = draws(~number);
  for (let i = 0; i < payload.length; i++) payload[i] = random();
}

/** See `fill`. */
export function isFilled(number: number, payload: Uint8Array): boolean {
  const random = draws(~number);
  return payload.every((byte) => byte === (random() & 0xff));
}

/** Numbers from 0 to 2^32 - 1: xorshift32. */
export function draws(seed: number): () => number {
  let x = Math.imul(seed, 0x9e3779b9) | 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return x >>> 0;
  };
}

/** Sleeps without giving the thread back. */
export function sleep(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
