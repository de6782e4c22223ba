import assert from "node:assert/strict";
import { type Batch, batchCount, batches, type BatchesOptions } from "../../../runtime/data/batches.ts";
import type { Samples } from "../../../runtime/data/samples.ts";
import { permutation } from "../../../runtime/data/shuffle.ts";

interface Recorded extends Samples {
  /** Indices in the order in which they were read. */
  readonly reads: number[];
}

/** Samples `i` of input `[i, i + 0.5]` and target `[-i]`; `before` runs ahead of each read. */
function numbers(length: number, before?: (index: number) => void | Promise<void>): Recorded {
  const reads: number[] = [];
  return {
    length,
    reads,
    input: { shape: [2], dtype: "float32" },
    target: { shape: [1], dtype: "float32" },
    read(index, input, target) {
      const fill = () => {
        input.set([index, index + 0.5]);
        target.set([-index]);
      };
      reads.push(index);
      const wait = before?.(index);
      return wait ? wait.then(fill) : fill();
    },
  };
}

async function collect(samples: Samples, options: BatchesOptions): Promise<Batch[]> {
  return await Array.fromAsync(batches(samples, options));
}

/** Waits until nothing more happens by itself. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("batches() gives every sample once, in order, the last batch smaller", async () => {
  for (const prefetch of [0, 1, 2, 10]) {
    for (const slow of [false, true]) {
      const wait = slow ? () => new Promise<void>((resolve) => setTimeout(resolve, 1)) : undefined;
      const result = await collect(numbers(7, wait), { batchSize: 3, shuffle: false, prefetch });
      assert.deepEqual(result.map(({ index, size }) => [index, size]), [[0, 3], [1, 3], [2, 1]]);
      assert.deepEqual(result.map(({ indices }) => [...indices]), [[0, 1, 2], [3, 4, 5], [6]]);
      assert.deepEqual([...result[1]!.inputs], [3, 3.5, 4, 4.5, 5, 5.5]);
      assert.deepEqual([...result[1]!.targets], [-3, -4, -5]);
      assert.deepEqual([...result[2]!.inputs], [6, 6.5]);
      assert.deepEqual([...result[2]!.targets], [-6]);
    }
  }
});

Deno.test("batches() shuffles by seed and epoch", async () => {
  const order = async (seed: number, epoch: number) => {
    const result = await collect(numbers(10), { batchSize: 4, shuffle: true, seed, epoch });
    for (const { indices, inputs } of result) {
      assert.deepEqual([...inputs].filter((_, i) => i % 2 === 0), [...indices]);
    }
    return result.flatMap(({ indices }) => [...indices]);
  };
  assert.deepEqual(await order(3, 2), [...permutation(10, 3, 2)]);
  assert.notDeepEqual(await order(3, 3), await order(3, 2));
});

Deno.test("batches() tells the samples which epoch it is", async () => {
  const epochs: (number | undefined)[] = [];
  const samples: Samples = {
    ...numbers(3),
    read: (_index, _input, _target, epoch) => void epochs.push(epoch),
  };
  await collect(samples, { batchSize: 2, shuffle: false, epoch: 5 });
  await collect(samples, { batchSize: 2, shuffle: false });
  assert.deepEqual(epochs, [5, 5, 5, 0, 0, 0]);
});

Deno.test("batches() drops a smaller last batch if asked to, and starts where asked to", async () => {
  const kept = await collect(numbers(7), { batchSize: 3, shuffle: false, dropRemainder: true });
  assert.deepEqual(kept.map(({ size }) => size), [3, 3]);
  const rest = await collect(numbers(7), { batchSize: 3, shuffle: false, start: 1 });
  assert.deepEqual(rest.map(({ index, indices }) => [index, ...indices]), [[1, 3, 4, 5], [2, 6]]);
  assert.deepEqual(await collect(numbers(7), { batchSize: 3, shuffle: false, start: 3 }), []);
  assert.deepEqual([batchCount(7, 3), batchCount(7, 3, true), batchCount(6, 3)], [3, 2, 2]);
});

Deno.test("batches() fills `prefetch` batches while the caller works, and no more", async () => {
  for (const prefetch of [0, 1, 2]) {
    const samples = numbers(20);
    const epoch = batches(samples, { batchSize: 2, shuffle: false, prefetch });
    await settle();
    assert.equal(samples.reads.length, 0, "nothing is read before the first batch is asked for");
    for (const taken of [1, 2, 3]) {
      await epoch.next();
      await settle();
      assert.equal(samples.reads.length, 2 * (taken + prefetch), `${taken} taken, ${prefetch} ahead`);
    }
    await epoch.return();
  }
});

Deno.test("batches() hands over a batch before it fills the next one", async () => {
  const samples = numbers(8);
  const epoch = batches(samples, { batchSize: 2, shuffle: false });
  await epoch.next();
  assert.deepEqual(samples.reads, [0, 1]);
  await settle();
  assert.deepEqual(samples.reads, [0, 1, 2, 3]);
  await epoch.next();
  assert.deepEqual(samples.reads, [0, 1, 2, 3]);
  await epoch.return();
});

Deno.test("batches() lets others run while it fills a long batch", async () => {
  const samples = numbers(30, () => {
    const end = performance.now() + 3;
    while (performance.now() < end);
  });
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await collect(samples, { batchSize: 30, shuffle: false });
  clearInterval(timer);
  assert.ok(turns >= 5, `${turns} turns in 90 ms`);
});

Deno.test("batches() gives each batch its own arrays, unless they may be reused", async () => {
  const own = await collect(numbers(12), { batchSize: 2, shuffle: false });
  assert.equal(new Set(own.map(({ inputs }) => inputs.buffer)).size, 6);
  const buffers = new Set<ArrayBufferLike>();
  for await (const batch of batches(numbers(13), { batchSize: 2, shuffle: false, reuse: true })) {
    buffers.add(batch.inputs.buffer);
    await settle(); // the next batch is filled meanwhile, and must not be filled into this one
    const [first = NaN] = batch.indices;
    const expected = batch.size === 2 ? [first, first + 0.5, first + 1, first + 1.5] : [first, first + 0.5];
    assert.deepEqual([...batch.inputs], expected);
    assert.equal(batch.targets.length, batch.size);
  }
  assert.equal(buffers.size, 2);
});

Deno.test("batches() throws a failed read at its batch's turn, with its sample", async () => {
  const failure = new TypeError("no such file");
  for (const slow of [false, true]) {
    const samples = numbers(12, (index) => {
      if (index !== 5) return;
      if (slow) return Promise.reject(failure);
      throw failure;
    });
    const epoch = batches(samples, { batchSize: 2, shuffle: false, prefetch: 3 });
    const seen: number[] = [];
    await assert.rejects(async () => {
      for await (const { index } of epoch) {
        seen.push(index);
        await settle(); // the failure happens here, batches ahead of its turn, and must not surface
      }
    }, (error: Error) => {
      assert.equal(error.message, "Cannot read sample 5: no such file");
      assert.equal(error.cause, failure);
      return true;
    });
    assert.deepEqual(seen, [0, 1]);
    assert.deepEqual(samples.reads, [0, 1, 2, 3, 4, 5], "nothing is read after a failure");
    assert.deepEqual(await epoch.next(), { done: true, value: undefined });
  }
});

Deno.test("batches() stops reading when the caller stops, and has ended when it says so", async () => {
  let reading = 0;
  const samples = numbers(100, async () => {
    reading++;
    await new Promise((resolve) => setTimeout(resolve, 2));
    reading--;
  });
  for await (const { index } of batches(samples, { batchSize: 10, shuffle: false, prefetch: 4 })) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (index === 1) break;
  }
  assert.equal(reading, 0, "no read is under way after the loop");
  const reads = samples.reads.length;
  assert.ok(reads < 50, `${reads} reads`);
  await settle();
  assert.equal(samples.reads.length, reads);
});

Deno.test("batches() drops a failure whose turn never comes, because the caller stops", async () => {
  const unhandled: unknown[] = [];
  const listener = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", listener);
  const samples = numbers(12, (index) => {
    if (index === 3) throw new Error("broken");
  });
  const epoch = batches(samples, { batchSize: 2, shuffle: false, prefetch: 4 });
  await epoch.next();
  await settle();
  await epoch.return();
  await settle();
  globalThis.removeEventListener("unhandledrejection", listener);
  assert.deepEqual(unhandled, []);
});

Deno.test("batches() rejects at once what gives no batches", () => {
  const options = { batchSize: 4, shuffle: false };
  assert.throws(() => batches(numbers(0), options), /Cannot make batches of 4 from 0 samples/);
  assert.throws(() => batches(numbers(3), { ...options, dropRemainder: true }), /of 4 from 3 samples/);
  assert.throws(
    () => batches(numbers(3), { ...options, batchSize: 0 }),
    /batchSize 0: expected an integer from 1/,
  );
  assert.throws(() => batches(numbers(3), { ...options, batchSize: 1.5 }), RangeError);
  assert.throws(() => batches(numbers(3), { ...options, prefetch: -1 }), RangeError);
  assert.throws(() => batches(numbers(3), { ...options, start: -1 }), RangeError);
  assert.throws(() => batches(numbers(3), { ...options, shuffle: true, seed: -1 }), RangeError);
});
