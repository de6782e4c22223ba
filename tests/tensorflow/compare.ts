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
  let scale = 1e-30;
  for (let i = 0; i < expected.length; i++) scale = Math.max(scale, Math.abs(Number(expected[i])));
  for (let i = 0; i < expected.length; i++) {
    const [a, b] = [Number(actual[i]), Number(expected[i])];
    if (!(Math.abs(a - b) <= tolerance * scale) && !Object.is(a, b)) {
      assert.fail(`${what}: [${i}] is ${a}, expected ${b} within ${tolerance * scale}`);
    }
  }
}
