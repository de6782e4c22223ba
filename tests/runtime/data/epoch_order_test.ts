/** What replicas take of each micro-batch lies together, and a step has the samples that one device would have. */
import assert from "node:assert/strict";
import { tf } from "../../../deps.ts";
import { shareOf } from "../../../runtime/coordinator/micro_batches.ts";
import {
  type BatchSource,
  type EpochOptions,
  samplesSource,
  tensorSource,
} from "../../../runtime/data/batch_source.ts";
import { lengthWithTail, shareOfEpoch, TAILS } from "../../../runtime/data/distributed_sampler.ts";
import {
  epochLength,
  epochOrder,
  type OrderOptions,
  type Sharding,
} from "../../../runtime/data/epoch_order.ts";
import { fc } from "../../deps.ts";

/** The same draws in every run. */
const RUNS = { seed: 5, numRuns: 300 };

interface Drawn extends OrderOptions {
  readonly samples: number;
  readonly epoch: number;
  readonly sharding: Sharding;
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  samples: fc.integer({ min: 9, max: 60 }),
  batchSize: fc.integer({ min: 1, max: 24 }),
  shuffle: fc.boolean(),
  seed: fc.nat(),
  epoch: fc.nat({ max: 1000 }),
  sharding: fc.record({
    replicas: fc.integer({ min: 1, max: 9 }),
    microBatchSize: fc.integer({ min: 1, max: 30 }),
    tail: fc.constantFrom(...TAILS),
  }),
});

function check(arbitrary: fc.Arbitrary<Drawn>, property: (value: Drawn) => void): void {
  fc.assert(fc.property(arbitrary, property), RUNS);
}

/** Batches of an order, each cut into micro-batches. */
function cut(order: Uint32Array, batchSize: number, microBatchSize: number): number[][][] {
  const parts = (list: number[], size: number) =>
    Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
  return parts([...order], batchSize).map((batch) => parts(batch, microBatchSize));
}

const sorted = (list: readonly number[]) => list.toSorted((a, b) => a - b);

Deno.test("every micro-batch has the samples that it has on one device, rank r those at places r, r + R, ...", () => {
  check(drawn, ({ samples, epoch, sharding, ...options }) => {
    const { replicas, microBatchSize, tail } = sharding;
    const alone = epochOrder(samples, options, epoch);
    const shared = epochOrder(samples, { ...options, sharding }, epoch);
    assert.equal(shared.length, epochLength(samples, sharding));
    const length = lengthWithTail(samples, replicas, tail);
    const order = Uint32Array.from({ length }, (_, place) => alone[place % samples]!);
    const [got, expected] = [shared, order].map((o) => cut(o, options.batchSize, microBatchSize));
    expected!.forEach((batch, b) =>
      batch.forEach((rows, m) => {
        const own = got![b]![m]!;
        assert.deepEqual(sorted(own), sorted(rows));
        for (let rank = 0; rank < replicas; rank++) {
          const { first, count } = shareOf(rows.length, rank, replicas);
          const places = rows.filter((_, place) => place % replicas === rank);
          assert.deepEqual(own.slice(first, first + count), places);
        }
      })
    );
  });
});

Deno.test("where micro-batches divide by the replicas, each rank takes the sampler's share, in its order", () => {
  check(drawn, (value) => {
    const { samples, epoch, shuffle, seed, sharding: { replicas, tail } } = value;
    const microBatchSize = replicas * (1 + value.sharding.microBatchSize % 3);
    const batchSize = microBatchSize * (1 + value.batchSize % 3);
    const sharding = { replicas, tail, microBatchSize };
    const order = epochOrder(samples, { shuffle, seed, batchSize, sharding }, epoch);
    const microBatches = cut(order, batchSize, microBatchSize).flat();
    for (let rank = 0; rank < replicas; rank++) {
      const taken = microBatches.flatMap((rows) => {
        const { first, count } = shareOf(rows.length, rank, replicas);
        return rows.slice(first, first + count);
      });
      const share = shareOfEpoch({ length: samples, replicas, shuffle, seed, tail }, rank, epoch);
      assert.deepEqual(taken, [...share]);
    }
  });
});

Deno.test("shareOf() cuts a micro-batch into parts that follow one another, as long as the sampler's", () => {
  fc.assert(
    fc.property(fc.nat({ max: 100 }), fc.integer({ min: 1, max: 9 }), (size, replicas) => {
      let next = 0;
      for (let rank = 0; rank < replicas; rank++) {
        const { first, count } = shareOf(size, rank, replicas);
        assert.equal(first, next);
        const sampler = { length: size, replicas, shuffle: false, seed: 0, tail: "keep" } as const;
        assert.equal(count, shareOfEpoch(sampler, rank, 0).length);
        next += count;
      }
      assert.equal(next, size);
    }),
    RUNS,
  );
});

/** Numbers 0 to `length - 1` from each kind of source that can be reordered. */
async function sources(length: number, options: EpochOptions): Promise<BatchSource[]> {
  const values = tf.range(0, length);
  const scalar = { shape: [1], dtype: "float32" } as const;
  const read = (index: number, input: Float32Array, target: Float32Array) => {
    input[0] = index;
    target[0] = index;
  };
  const column = tf.reshape(values, [length, 1]);
  return [
    await tensorSource([column], [column], options),
    samplesSource({ length, input: scalar, target: scalar, read }, options),
  ];
}

/** What each batch of an epoch holds. */
async function batchesOf(source: BatchSource, epoch: number): Promise<number[][]> {
  const all: number[][] = [];
  for await (const { size, inputs, targets } of source.epoch(epoch)) {
    const [x, y] = [inputs[0]!, targets[0]!].map((tensor) => {
      const rows = new Float32Array(size);
      tensor.copyRows(0, size, new Uint8Array(rows.buffer));
      return [...rows];
    });
    assert.deepEqual(x, y);
    all.push(x!);
  }
  return all;
}

Deno.test("sources take their samples in this order, and count them", async () => {
  const base = { batchSize: 8, shuffle: true, seed: 3 };
  for (const accumulate of [1, 2]) {
    for (const tail of TAILS) {
      const sharding = { replicas: 3, microBatchSize: 5, tail };
      const all = { ...base, batchSize: accumulate * base.batchSize, sharding };
      const expected = cut(epochOrder(29, all, 4), all.batchSize, all.batchSize).map(([rows]) => rows);
      for (const source of await sources(29, { ...base, accumulate, sharding })) {
        const got = await batchesOf(source, 4);
        assert.deepEqual(got, expected);
        assert.equal(source.samples, { pad: 30, drop: 27, keep: 29 }[tail]);
        assert.deepEqual([source.batches, source.batchSize], [got.length, all.batchSize]);
      }
    }
  }
});

Deno.test("single and shared epochs hold the same samples in each step", async () => {
  const base = { batchSize: 8, shuffle: true, seed: 3 };
  const sharding = { replicas: 2, microBatchSize: 3, tail: "keep" } as const;
  const [alone, shared] = [await sources(29, base), await sources(29, { ...base, sharding })];
  for (const [i, source] of shared.entries()) {
    const [one, several] = [await batchesOf(alone[i]!, 2), await batchesOf(source, 2)];
    assert.deepEqual(several.map(sorted), one.map(sorted));
    assert.notDeepEqual(several, one);
  }
});

Deno.test("a sharding that makes no sense, or leaves no sample, is refused", async () => {
  const base = { batchSize: 8, shuffle: true, seed: 3 };
  const cases: [Sharding, RegExp][] = [
    [{ replicas: 0, microBatchSize: 4, tail: "pad" }, /replicas 0: expected an integer >= 1/],
    [{ replicas: 2, microBatchSize: 0, tail: "pad" }, /microBatchSize 0: expected an integer >= 1/],
    [
      { replicas: 4, microBatchSize: 4, tail: "drop" },
      /^RangeError: Cannot share 3 samples among 4 replicas with tail "drop": none is left; give at least 4/,
    ],
  ];
  for (const [sharding, message] of cases) await assert.rejects(sources(3, { ...base, sharding }), message);
});
