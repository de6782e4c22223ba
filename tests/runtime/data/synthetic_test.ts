import assert from "node:assert/strict";
import type { Samples } from "../../../runtime/data/samples.ts";
import { synthetic } from "../../../runtime/data/synthetic.ts";
import { sizeOf } from "../../../ring/dtype.ts";

function read(samples: Samples, index: number): { input: number[]; target: number[] } {
  const input = new Float32Array(sizeOf(samples.input.shape)).fill(NaN);
  const target = new Float32Array(sizeOf(samples.target.shape)).fill(NaN);
  samples.read(index, input, target);
  return { input: [...input], target: [...target] };
}

Deno.test("synthetic() makes each sample from the seed and its index alone", () => {
  const options = { input: [4, 4, 3], target: 1000, count: 100, seed: 7 };
  const [forwards, backwards] = [synthetic(options), synthetic(options)];
  const first = [0, 1, 99].map((index) => read(forwards, index));
  const again = [99, 1, 0].map((index) => read(backwards, index)).reverse();
  assert.deepEqual(first, again);
  assert.notDeepEqual(first[0], first[1]);
  assert.notDeepEqual(first[0], read(synthetic({ ...options, seed: 8 }), 0));
  assert.deepEqual(first[0]!.input.slice(0, 3), [0.589907169342041, 0.9786239266395569, 1.1854573488235474]);
  assert.equal(first[0]!.target.indexOf(1), 774);
});

Deno.test("synthetic() draws inputs from the standard normal distribution", () => {
  const samples = synthetic({ input: [64, 64, 3], target: 2, count: 8 });
  assert.deepEqual(samples.input, { shape: [64, 64, 3], dtype: "float32" });
  const values = Array.from({ length: 8 }, (_, i) => read(samples, i).input).flat();
  const mean = values.reduce((a, b) => a + b) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  assert.ok(Math.abs(mean) < 4 / Math.sqrt(values.length), `mean ${mean}`);
  assert.ok(Math.abs(variance - 1) < 4 * Math.sqrt(2 / values.length), `variance ${variance}`);
});

Deno.test("synthetic() draws one-hot targets, each class alike often", () => {
  const samples = synthetic({ input: [1], target: 5, count: 5_000 });
  assert.deepEqual(samples.target.shape, [5]);
  const times = new Array(5).fill(0);
  for (let i = 0; i < samples.length; i++) {
    const { target } = read(samples, i);
    assert.deepEqual(target.toSorted(), [0, 0, 0, 0, 1]);
    times[target.indexOf(1)]++;
  }
  // Chi-squared with 4 degrees of freedom exceeds 23.5 once in 10,000 seeds.
  const chi2 = times.reduce((sum, n) => sum + (n - 1000) ** 2 / 1000, 0);
  assert.ok(chi2 < 23.5, `${times}`);
});

Deno.test("synthetic() draws dense targets, normal or binary", () => {
  const normal = read(synthetic({ input: [2], target: [50, 50, 1], count: 1 }), 0).target;
  assert.ok(normal.some((x) => x < -2) && normal.some((x) => x > 2));
  const masks = synthetic({ input: [2], target: [50, 50, 1], values: "binary", count: 1 });
  assert.deepEqual(masks.target.shape, [50, 50, 1]);
  const binary = read(masks, 0).target;
  assert.deepEqual([...new Set(binary)].sort(), [0, 1]);
  const ones = binary.reduce((a, b) => a + b);
  assert.ok(Math.abs(ones - 1250) < 5 * 25, `${ones} ones of 2,500`);
});

Deno.test("synthetic() rejects options and indices that are out of range", () => {
  const options = { input: [2], target: 2, count: 3 };
  assert.throws(() => synthetic({ ...options, input: [2, 0] }), /an input of \[2, 0\]/);
  assert.throws(() => synthetic({ ...options, target: 1.5 }), RangeError);
  assert.throws(() => synthetic({ ...options, count: 0 }), RangeError);
  assert.throws(() => synthetic({ ...options, seed: -1 }), RangeError);
  assert.throws(
    () => synthetic({ ...options, values: "uniform" as "normal" }),
    /Cannot draw values "uniform"/,
  );
  assert.throws(() => read(synthetic(options), 3), /Cannot read sample 3: expected 0 to 2/);
});
