import assert from "node:assert/strict";
import { mnist } from "../../../runtime/data/mnist.ts";
import type { Samples } from "../../../runtime/data/samples.ts";
import { sizeOf } from "../../../ring/dtype.ts";

const COUNTS = [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978];

function read(samples: Samples, index: number): { input: Float32Array; target: Float32Array } {
  const input = new Float32Array(sizeOf(samples.input.shape)).fill(NaN);
  const target = new Float32Array(sizeOf(samples.target.shape)).fill(NaN);
  samples.read(index, input, target);
  return { input, target };
}

function labelsOf(samples: Samples): number[] {
  return Array.from({ length: samples.length }, (_, i) => read(samples, i).target.indexOf(1));
}

function countsOf(labels: readonly number[]): number[] {
  const counts = new Array(10).fill(0);
  for (const label of labels) counts[label]++;
  return counts;
}

Deno.test("mnist() gives all 10,000 digits, as many of each as the package has", async () => {
  const digits = await mnist({ split: "all" });
  assert.equal(digits.length, 10_000);
  assert.deepEqual(digits.input, { shape: [28, 28, 1], dtype: "float32" });
  assert.deepEqual(digits.target, { shape: [10], dtype: "float32" });
  assert.deepEqual(digits.classes, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
  assert.deepEqual(countsOf(labelsOf(digits)), COUNTS);
});

Deno.test("mnist() gives the bytes of MNIST over 255", async () => {
  const digits = await mnist();
  const zero = labelsOf(await mnist({ count: 10 })).indexOf(0);
  const { input, target } = read(digits, zero);
  const rows = Array.from({ length: 28 }, (_, y) => [...input.subarray(28 * y, 28 * (y + 1))]);
  // The first 0 of the training set, image 1 of train-images-idx3-ubyte.
  const [row4, row20] = [[...zeros(15), 51, 159, 253, 159, 50, ...zeros(8)], [
    ...zeros(6),
    ...[85, 252, 249, 146, 48, 29, 85, 178, 225, 253, 223, 167, 56],
    ...zeros(9),
  ]];
  assert.deepEqual(rows[4], row4.map((byte) => Math.fround(byte / 255)));
  assert.deepEqual(rows[20], row20.map((byte) => Math.fround(byte / 255)));
  assert.ok(rows[3]!.every((value) => value === 0));
  assert.deepEqual([...target], [1, ...zeros(9)]);
});

Deno.test("mnist() spreads the digits evenly: any hundred in a row hold each about as often", async () => {
  const labels = labelsOf(await mnist({ split: "all" }));
  for (let start = 0; start + 100 <= labels.length; start += 50) {
    const counts = countsOf(labels.slice(start, start + 100));
    for (const [digit, count] of counts.entries()) {
      assert.ok(Math.abs(count - COUNTS[digit]! / 100) < 2, `from ${start}: ${count} times ${digit}`);
    }
  }
});

Deno.test("mnist() splits into 9,000 digits to train and 1,000 others to test", async () => {
  const [all, train, test] = [await mnist({ split: "all" }), await mnist(), await mnist({ split: "test" })];
  assert.deepEqual([train.length, test.length], [9_000, 1_000]);
  assert.deepEqual(read(train, 8_999), read(all, 8_999));
  assert.deepEqual(read(test, 0), read(all, 9_000));
  assert.deepEqual(read(test, 999), read(all, 9_999));
  const images = new Set<string>();
  for (let i = 0; i < all.length; i++) images.add(read(all, i).input.join());
  assert.equal(images.size, 10_000, "no image stands twice, so the two share none");
});

Deno.test("mnist() takes a count from the start of the split", async () => {
  const few = await mnist({ count: 7 });
  assert.equal(few.length, 7);
  assert.deepEqual(read(few, 6), read(await mnist(), 6));
  assert.throws(() => read(few, 7), /Cannot read digit 7: expected 0 to 6/);
});

Deno.test("mnist() resizes to a shape, with the same grey in each channel", async () => {
  const [small, large] = [await mnist(), await mnist({ shape: [56, 112, 3] })];
  assert.deepEqual(large.input.shape, [56, 112, 3]);
  const source = read(small, 4).input;
  const { input } = read(large, 4);
  assert.equal(input.length, 56 * 112 * 3);
  for (let y = 0; y < 56; y++) {
    for (let x = 0; x < 112; x++) {
      const [red, green, blue] = input.subarray(3 * (112 * y + x), 3 * (112 * y + x) + 3);
      assert.ok(Math.abs(red! - interpolate(source, (y + 0.5) / 2 - 0.5, (x + 0.5) / 4 - 0.5)) < 1e-6);
      assert.deepEqual([green, blue], [red, red]);
    }
  }
});

/** The value between four pixels of a digit; `y` and `x` are counted from the centre of the first pixel. */
function interpolate(source: Float32Array, y: number, x: number): number {
  const at = (row: number, column: number) =>
    source[28 * Math.min(Math.max(row, 0), 27) + Math.min(Math.max(column, 0), 27)]!;
  const [top, left] = [Math.floor(y), Math.floor(x)];
  const [down, right] = [y - top, x - left];
  const upper = at(top, left) * (1 - right) + at(top, left + 1) * right;
  const lower = at(top + 1, left) * (1 - right) + at(top + 1, left + 1) * right;
  return upper * (1 - down) + lower * down;
}

Deno.test("mnist() pads a one-hot target for a model with more outputs", async () => {
  const { target } = read(await mnist({ classes: 1000 }), 0);
  assert.equal(target.length, 1000);
  assert.equal(target.reduce((a, b) => a + b), 1);
  assert.equal(target.indexOf(1), read(await mnist(), 0).target.indexOf(1));
});

Deno.test("mnist() rejects options that are out of range", async () => {
  await assert.rejects(mnist({ shape: [28, 0, 1] }), /of shape \[28, 0, 1\]/);
  await assert.rejects(mnist({ count: 9_001 }), /Cannot take 9001 digits: expected 1 to 9000/);
  await assert.rejects(mnist({ count: 0 }), RangeError);
  await assert.rejects(mnist({ classes: 9 }), /by 9 classes/);
  await assert.rejects(mnist({ split: "valid" as "test" }), /the split "valid"/);
});

function zeros(length: number): number[] {
  return new Array(length).fill(0);
}
