import assert from "node:assert/strict";
import { PURPOSE, Random, randomStream } from "../../../runtime/data/random.ts";

function take(length: number, draw: () => number): number[] {
  return Array.from({ length }, draw);
}

Deno.test("Random gives the numbers of the reference implementation of xoshiro128**", () => {
  const random = new Random([1, 2, 3, 4]);
  assert.deepEqual(take(10, () => random.bits() >>> 0), [
    ...[11520, 0, 5927040, 70819200, 2031721883],
    ...[1637235492, 1287239034, 3734860849, 3729100597, 4258142804],
  ]);
});

Deno.test("Random rejects a state of zeros", () => {
  assert.throws(() => new Random([0, 0, 0, 0]), RangeError);
});

Deno.test("below() gives each number equally often, also where the limit is no power of two", () => {
  const random = randomStream(PURPOSE.synthetic, 1);
  for (const limit of [1, 2, 3, 7, 10]) {
    const draws = 60_000;
    const times = new Array(limit).fill(0);
    for (let i = 0; i < draws; i++) times[random.below(limit)]++;
    // Chi-squared with limit - 1 <= 9 degrees of freedom exceeds 33.7 once in 10,000 seeds.
    const chi2 = times.reduce((sum, n) => sum + (n - draws / limit) ** 2 / (draws / limit), 0);
    assert.ok(chi2 < 33.7, `limit ${limit}: ${times}`);
  }
});

Deno.test("below() favours no number where the limit is just over a power of two", () => {
  const random = randomStream(PURPOSE.synthetic, 2);
  const limit = 3 * 2 ** 30; // a remainder of 32 bits would fall into the first third twice as often
  const low = take(30_000, () => random.below(limit)).filter((n) => n < 2 ** 30).length;
  assert.ok(Math.abs(low - 10_000) < 5 * Math.sqrt(30_000 * 2 / 9), `${low}`);
});

Deno.test("normal() follows the standard normal distribution, tails included", () => {
  const random = randomStream(PURPOSE.synthetic, 3);
  const n = 1_000_000;
  let [sum, squares, fourths] = [0, 0, 0];
  const bounds = [0.1, 0.5, 1, 2, 3, 3.442619855899, 4];
  const outside = bounds.map(() => 0);
  for (let i = 0; i < n; i++) {
    const x = random.normal();
    sum += x;
    squares += x ** 2;
    fourths += x ** 4;
    for (const [k, bound] of bounds.entries()) if (Math.abs(x) > bound) outside[k]!++;
  }
  const sigmas = 4;
  assert.ok(Math.abs(sum / n) < sigmas / Math.sqrt(n), `mean ${sum / n}`);
  assert.ok(Math.abs(squares / n - 1) < sigmas * Math.sqrt(2 / n), `variance ${squares / n}`);
  assert.ok(Math.abs(fourths / n - 3) < sigmas * Math.sqrt(96 / n), `fourth moment ${fourths / n}`);
  const expected = [ // erfc(bound / sqrt(2))
    ...[0.920344325, 0.617075077, 0.317310508, 0.0455002639, 2.69979606e-3, 5.76108512e-4, 6.33424837e-5],
  ];
  for (const [k, p] of expected.entries()) {
    const deviation = Math.sqrt(n * p * (1 - p));
    assert.ok(Math.abs(outside[k]! - n * p) < sigmas * deviation, `beyond ${bounds[k]}: ${outside[k]}`);
  }
});

Deno.test("randomStream() gives the same numbers for a key on every machine", () => {
  const random = randomStream(PURPOSE.synthetic, 7, 3);
  assert.deepEqual(take(4, () => random.bits()), [-591713062, 2092597906, 1239454030, 1353729147]);
  assert.deepEqual(take(2, () => random.normal()), [0.8941600137226087, 1.3918617346332292]);
});

Deno.test("randomStream() gives keys that differ in one number unrelated streams", () => {
  const keys = [[1, 0, 0], [2, 0, 0], [1, 1, 0], [1, 0, 1], [1, 2 ** 32, 0], [1, 0], [1, 0, 0, 0]];
  const streams = keys.map((key) => {
    const random = randomStream(...key);
    return take(1_000, () => random.bits());
  });
  for (const [i, a] of streams.entries()) {
    for (const b of streams.slice(i + 1)) {
      let same = 0;
      for (let k = 0; k < a.length; k++) {
        for (let bit = 0; bit < 32; bit++) same += 1 ^ ((a[k]! ^ b[k]!) >>> bit & 1);
      }
      assert.ok(Math.abs(same - 16_000) < 5 * Math.sqrt(8_000), `${same} of 32,000 bits alike`);
    }
  }
});

Deno.test("randomStream() rejects a seed that is not a safe integer", () => {
  for (const seed of [-1, 0.5, NaN, 2 ** 53]) assert.throws(() => randomStream(1, seed), RangeError);
});
