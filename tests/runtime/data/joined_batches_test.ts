/** Tests of batches joined into one. */
import assert from "node:assert/strict";
import type { BatchSource, HostBatch, HostTensor } from "../../../runtime/data/batch_source.ts";
import { joinBatches } from "../../../runtime/data/joined_batches.ts";

/** A tensor of consecutive pairs of bytes. */
function pairs(first: number, size: number): HostTensor {
  return {
    spec: { shape: [2], dtype: "bool" },
    copyRows: (from, count, target) => {
      assert.equal(target.length, 2 * count, "room for these rows alone");
      assert.ok(from >= 0 && count > 0 && from + count <= size, "rows of the batch");
      target.set(Uint8Array.from({ length: 2 * count }, (_, i) => 2 * (first + from) + i));
    },
  };
}

/** Batches of these sizes over rows that are counted through. */
function source(sizes: readonly number[], batches: number | undefined = sizes.length): BatchSource {
  const spec = { shape: [2], dtype: "bool" } as const;
  return {
    inputs: [spec],
    targets: [spec],
    batchSize: sizes[0]!,
    samples: undefined,
    batches,
    async *epoch() {
      let first = 0;
      for (const size of sizes) {
        yield { size, inputs: [pairs(first, size)], targets: [pairs(100 + first, size)] };
        first += size;
      }
    },
  };
}

async function joined(sizes: readonly number[], count: number): Promise<HostBatch[]> {
  return await Array.fromAsync(joinBatches(source(sizes), count).epoch(0));
}

/** Rows of a tensor by their first byte. */
function rows(tensor: HostTensor, first: number, count: number): number[] {
  const target = new Uint8Array(2 * count);
  tensor.copyRows(first, count, target);
  return [...target].filter((_, i) => i % 2 === 0).map((value) => value / 2);
}

Deno.test("joinBatches() joins those that follow one another; the last may be fewer, and smaller", async () => {
  assert.deepEqual((await joined([3, 3, 3, 3, 1], 2)).map(({ size }) => size), [6, 6, 1]);
  assert.deepEqual((await joined([3, 2, 3, 1], 3)).map(({ size }) => size), [8, 1]);
  assert.deepEqual((await joined([3, 3], 5)).map(({ size }) => size), [6]);
});

Deno.test("joinBatches() copies any rows, whichever batches they lie in", async () => {
  const [batch] = await joined([3, 1, 2, 4], 4);
  for (let first = 0; first < 10; first++) {
    for (let count = 1; first + count <= 10; count++) {
      const expected = Array.from({ length: count }, (_, i) => first + i);
      assert.deepEqual(rows(batch!.inputs[0]!, first, count), expected);
      assert.deepEqual(rows(batch!.targets[0]!, first, count), expected.map((row) => (100 + row) % 128));
    }
  }
});

Deno.test("joinBatches() tells how many it joins, and leaves one as it is", () => {
  const four = joinBatches(source([3, 3, 3, 1]), 3);
  assert.deepEqual([four.batchSize, four.joined, four.batches], [9, 3, 2]);
  const few = joinBatches(source([3, 3]), 5);
  assert.deepEqual([few.batchSize, few.joined, few.batches], [6, 2, 1]);
  const unknown = joinBatches({ ...source([3, 3]), batches: undefined }, 5);
  assert.deepEqual([unknown.batchSize, unknown.joined, unknown.batches], [15, 5, undefined]);
  const one = source([3]);
  assert.equal(joinBatches(one, 1), one);
});

Deno.test("joinBatches() refuses batches of another kind than the first", async () => {
  const mixed = source([3, 3]);
  const epoch = async function* (): AsyncGenerator<HostBatch, void, void> {
    for await (const batch of mixed.epoch(0)) {
      const input = { ...batch.inputs[0]!, spec: { shape: [5], dtype: "bool" } as const };
      yield { ...batch, inputs: [input] };
    }
  };
  await assert.rejects(
    Array.fromAsync(joinBatches({ ...mixed, epoch }, 2).epoch(0)),
    /^RangeError: Cannot run a batch with bool of shape \[5\] per sample: the first one had bool of shape \[2\]/,
  );
});
