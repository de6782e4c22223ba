/** Compares numbers within a tolerance. @module */
import assert from "node:assert/strict";

/**
 * Asserts that numbers are equal within `tolerance` of the largest expected one: rounding errors of sums are
 * of its size, however small the sum itself comes out.
 */
export function close(
  actual: ArrayLike<unknown>,
  expected: ArrayLike<unknown>,
  tolerance: number,
  what = "values",
): void {
  assert.equal(actual.length, expected.length, `${what}: length`);
  const scale = Math.max(1e-30, ...Array.from(expected, (v) => Math.abs(Number(v))));
  for (let i = 0; i < expected.length; i++) {
    const [a, b] = [Number(actual[i]), Number(expected[i])];
    assert.ok(
      Math.abs(a - b) <= tolerance * scale,
      `${what}: [${i}] is ${a}, expected ${b} within ${tolerance * scale}`,
    );
  }
}
