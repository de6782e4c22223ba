/** The sampler has what PyTorch documents of `DistributedSampler`, whatever is drawn. */
import assert from "node:assert/strict";
import {
  type SamplerOptions,
  shareOfEpoch,
  type Tail,
  TAILS,
} from "../../../runtime/data/distributed_sampler.ts";
import { inOrder, permutation } from "../../../runtime/data/shuffle.ts";
import { fc } from "../../deps.ts";

/** The same draws in every run. */
const RUNS = { seed: 5, numRuns: 300 };

const options = (tail: fc.Arbitrary<Tail> = fc.constantFrom(...TAILS), least = 0) =>
  fc.record({
    length: fc.integer({ min: least, max: 60 }),
    replicas: fc.integer({ min: 1, max: 9 }),
    shuffle: fc.boolean(),
    seed: fc.nat(),
    tail,
  });
const epochs = fc.nat({ max: 1000 });

/** All ranks' shares. */
function shares(sampler: SamplerOptions, epoch: number): number[][] {
  return Array.from({ length: sampler.replicas }, (_, rank) => [...shareOfEpoch(sampler, rank, epoch)]);
}

function check<T>(drawn: fc.Arbitrary<T>, property: (value: T, epoch: number) => void): void {
  fc.assert(fc.property(drawn, epochs, property), RUNS);
}

function orderOf({ length, shuffle, seed }: SamplerOptions, epoch: number): number[] {
  return [...shuffle ? permutation(length, seed, epoch) : inOrder(length)];
}

Deno.test("shareOfEpoch() gives what PyTorch 2.15 gives", () => {
  const plain = { shuffle: false, seed: 0 } as const;
  assert.deepEqual(shares({ ...plain, length: 10, replicas: 3, tail: "pad" }, 0), [
    [0, 3, 6, 9],
    [1, 4, 7, 0],
    [2, 5, 8, 1],
  ]);
  assert.deepEqual(shares({ ...plain, length: 10, replicas: 3, tail: "drop" }, 0), [
    [0, 3, 6],
    [1, 4, 7],
    [2, 5, 8],
  ]);
  assert.deepEqual(shares({ ...plain, length: 2, replicas: 7, tail: "pad" }, 0), [[0], [1], [0], [1], [0], [
    1,
  ], [
    0,
  ]]);
  assert.deepEqual(shares({ ...plain, length: 2, replicas: 3, tail: "drop" }, 0), [[], [], []]);
});

Deno.test("every rank gets as many samples: as few as there must be with pad, as many as there can be with drop", () => {
  check(options(fc.constantFrom("pad", "drop")), (sampler, epoch) => {
    const { length, replicas, tail } = sampler;
    const each = tail === "pad" ? Math.ceil(length / replicas) : Math.floor(length / replicas);
    for (const share of shares(sampler, epoch)) assert.equal(share.length, each);
  });
});

Deno.test("with keep, shares differ by one at most, the first ranks have more, and each sample comes once", () => {
  check(options(fc.constant("keep")), (sampler, epoch) => {
    const all = shares(sampler, epoch);
    const lengths = all.map(({ length }) => length);
    assert.deepEqual(lengths, lengths.toSorted((a, b) => b - a));
    assert.ok(lengths[0]! - lengths.at(-1)! <= 1);
    assert.deepEqual(all.flat().sort((a, b) => a - b), [...inOrder(sampler.length)]);
  });
});

Deno.test("with pad, every sample comes, and those that come again are the order's first, in turn", () => {
  check(options(fc.constant("pad"), 1), (sampler, epoch) => {
    const all = shares(sampler, epoch);
    const order = orderOf(sampler, epoch);
    const times = new Map<number, number>();
    for (const sample of all.flat()) times.set(sample, (times.get(sample) ?? 0) + 1);
    const counts = order.map((sample) => times.get(sample)!); // none is missing
    assert.ok(counts.every((count) => count >= 1));
    assert.deepEqual(counts, counts.toSorted((a, b) => b - a)); // the first ones come more often
    assert.ok(counts[0]! - counts.at(-1)! <= 1);
  });
});

Deno.test("with drop, shares have nothing in common, and what is left out are the order's last, fewer than ranks", () => {
  check(options(fc.constant("drop")), (sampler, epoch) => {
    const all = shares(sampler, epoch).flat();
    const order = orderOf(sampler, epoch);
    assert.equal(new Set(all).size, all.length);
    const left = order.filter((sample) => !all.includes(sample));
    assert.ok(left.length < sampler.replicas);
    assert.deepEqual(left, order.slice(order.length - left.length));
  });
});

Deno.test("rank r takes places r, r + R, ... of one order, its end filled up from its beginning", () => {
  check(options(), (sampler, epoch) => {
    const all = shares(sampler, epoch);
    const order = orderOf(sampler, epoch);
    all.forEach((share, rank) =>
      share.forEach((sample, i) =>
        assert.equal(sample, order[(rank + i * sampler.replicas) % sampler.length])
      )
    );
  });
});

Deno.test("the same seed and epoch give the same shares, other ones others", () => {
  check(options(fc.constantFrom(...TAILS), 30), (drawn, epoch) => {
    const sampler = { ...drawn, shuffle: true };
    const own = shares(sampler, epoch);
    assert.deepEqual(shares(sampler, epoch), own);
    assert.notDeepEqual(shares(sampler, epoch + 1), own);
    assert.notDeepEqual(shares({ ...sampler, seed: sampler.seed + 1 }, epoch), own);
    const inTurn = { ...drawn, shuffle: false };
    assert.deepEqual(shares(inTurn, epoch + 1), shares(inTurn, epoch));
  });
});

Deno.test("shareOfEpoch() refuses what makes no sense", () => {
  const good = { length: 4, replicas: 2, shuffle: false, seed: 0, tail: "pad" } as const;
  assert.throws(() => shareOfEpoch(good, 2, 0), /^RangeError: Cannot use rank 2: expected one from 0 to 1/);
  assert.throws(() => shareOfEpoch(good, -1, 0), /rank -1: expected an integer >= 0/);
  assert.throws(() => shareOfEpoch({ ...good, replicas: 0 }, 0, 0), /replicas 0: expected an integer >= 1/);
  assert.throws(() => shareOfEpoch({ ...good, length: 1.5 }, 0, 0), /length 1.5: expected an integer >= 0/);
  const cut = { ...good, tail: "cut" as Tail };
  assert.throws(() => shareOfEpoch(cut, 0, 0), /tail "cut": expected one of pad, drop, keep/);
});
