import assert from "node:assert/strict";
import { inOrder, permutation } from "../../../runtime/data/shuffle.ts";

Deno.test("permutation() holds every index once", () => {
  for (const length of [0, 1, 2, 1000]) {
    assert.deepEqual(permutation(length, 1, 2).toSorted(), inOrder(length));
  }
});

Deno.test("permutation() gives the same order for the same seed and epoch", () => {
  assert.deepEqual([...permutation(10, 42, 0)], [6, 7, 4, 5, 3, 2, 8, 1, 0, 9]);
  assert.deepEqual([...permutation(10, 42, 1)], [4, 3, 7, 8, 9, 1, 6, 5, 0, 2]);
  assert.deepEqual(permutation(500, 42, 3), permutation(500, 42, 3));
});

Deno.test("permutation() gives another order for another seed or epoch", () => {
  const orders = [[0, 0], [0, 1], [1, 0], [1, 1], [2 ** 32, 0], [0, 2 ** 32]].map(([seed, epoch]) =>
    permutation(100, seed!, epoch!).join()
  );
  assert.equal(new Set(orders).size, orders.length);
});

Deno.test("permutation() gives all orders equally often", () => {
  const times = new Map<string, number>();
  const rounds = 24_000;
  for (let epoch = 0; epoch < rounds; epoch++) {
    const order = permutation(4, 5, epoch).join();
    times.set(order, (times.get(order) ?? 0) + 1);
  }
  assert.equal(times.size, 24);
  // Chi-squared with 23 degrees of freedom exceeds 59 less than once in 10,000 seeds.
  const chi2 = [...times.values()].reduce((sum, n) => sum + (n - 1000) ** 2 / 1000, 0);
  assert.ok(chi2 < 59, `chi-squared ${chi2}`);
});

Deno.test("permutation() rejects what is not a count, a seed or an epoch", () => {
  assert.throws(() => permutation(-1, 0, 0), /Cannot shuffle -1 samples/);
  assert.throws(() => permutation(1.5, 0, 0), RangeError);
  assert.throws(() => permutation(3, -1, 0), RangeError);
  assert.throws(() => permutation(3, 0, 0.5), RangeError);
});
