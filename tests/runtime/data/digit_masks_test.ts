import assert from "node:assert/strict";
import { digitMasks } from "../../../runtime/data/digit_masks.ts";
import { randomStream } from "../../../runtime/data/random.ts";
import { Texture } from "../../../runtime/data/texture.ts";
import { read } from "./folders.ts";

const SIZE = 64;

Deno.test("digitMasks() makes each image from the seed and its index alone", async () => {
  const [a, b] = [await digitMasks({ count: 20, seed: 7 }), await digitMasks({ count: 20, seed: 7 })];
  assert.equal(a.length, 20);
  assert.deepEqual(a.input, { shape: [64, 64, 3], dtype: "float32" });
  assert.deepEqual(a.target, { shape: [64, 64, 1], dtype: "float32" });
  const first = await read(a, 3);
  await read(b, 19);
  assert.deepEqual(await read(b, 3), first);
  assert.deepEqual(await read(b, 3, 5), first, "in each epoch");
  assert.notDeepEqual((await read(a, 4)).target, first.target);
  for (const options of [{ seed: 8 }, { seed: 7, split: "test" }] as const) {
    const other = await read(await digitMasks(options), 3);
    assert.notDeepEqual(other.input, first.input);
    assert.notDeepEqual(other.target, first.target);
  }
  await assert.rejects(read(a, 20), /Cannot read image 20: expected 0 to 19/);
});

Deno.test("digitMasks() gives images from 0 to 1 and masks of 0 and 1 with some strokes", async () => {
  for (const shape of [[64, 64, 3], [32, 96, 1]] as const) {
    const samples = await digitMasks({ shape, count: 200 });
    const areas = [];
    for (let i = 0; i < samples.length; i++) {
      const { input, target } = await read(samples, i);
      assert.ok(input.every((value) => value >= 0 && value <= 1));
      assert.ok(target.every((value) => value === 0 || value === 1));
      areas.push(target.filter((value) => value === 1).length / target.length);
    }
    assert.ok(Math.min(...areas) > 0.002, `least ${Math.min(...areas)}`);
    assert.ok(Math.max(...areas) < 0.5, `most ${Math.max(...areas)}`);
    assert.equal(new Set(areas).size > 100, true);
  }
});

Deno.test("digitMasks() lays the mask where the strokes are", async () => {
  const samples = await digitMasks({ count: 100 });
  /** Mean difference between the colour under the mask and around it, with the mask moved. */
  const contrast = async (moved: number) => {
    let sum = 0;
    for (let i = 0; i < samples.length; i++) {
      const { input, target } = await read(samples, i);
      const [inside, outside] = [[0, 0, 0, 0], [0, 0, 0, 0]];
      for (let y = 0; y < SIZE; y++) {
        for (let x = 0; x < SIZE; x++) {
          const from = y * SIZE + (x + moved + SIZE) % SIZE;
          const place = target[from] === 1 ? inside : outside;
          for (let c = 0; c < 3; c++) place[c]! += input[(y * SIZE + x) * 3 + c]!;
          place[3]!++;
        }
      }
      for (let c = 0; c < 3; c++) sum += Math.abs(inside[c]! / inside[3]! - outside[c]! / outside[3]!);
    }
    return sum / samples.length / 3;
  };
  const [still, left, right] = [await contrast(0), await contrast(-2), await contrast(2)];
  assert.ok(still > 1.3 * left && still > 1.3 * right, `${still}, moved ${left} and ${right}`);
});

Deno.test("digitMasks() has 2,000 images to train and 500 to test by default", async () => {
  const [train, test] = [await digitMasks(), await digitMasks({ split: "test" })];
  assert.deepEqual([train.length, test.length], [2_000, 500]);
});

Deno.test("digitMasks() refuses options that are out of range", async () => {
  await assert.rejects(
    digitMasks({ shape: [8, 64, 3] }),
    /on \[8, 64, 3\]: expected .* from 16, channels from 1/,
  );
  await assert.rejects(digitMasks({ shape: [64, 64] as never }), RangeError);
  await assert.rejects(digitMasks({ count: 0 }), /Cannot draw 0 images: expected an integer from 1/);
  await assert.rejects(digitMasks({ split: "all" as "test" }), /the split "all": expected "train" or "test"/);
  await assert.rejects(digitMasks({ seed: 0.5 }), RangeError);
});

Deno.test("Texture draws one colour after another, between 0 and 1, coarse and fine", () => {
  const texture = new Texture([32, 48, 3]);
  const pixels = new Float32Array(32 * 48 * 3);
  const means = new Set<number>();
  for (let seed = 0; seed < 20; seed++) {
    const mean = texture.draw(randomStream(seed), pixels);
    const found = [0, 1, 2].map((c) =>
      pixels.reduce((sum, v, i) => i % 3 === c ? sum + v : sum, 0) / (32 * 48)
    );
    mean.forEach((value, c) => assert.ok(Math.abs(value - found[c]!) < 1e-4));
    assert.ok(pixels.every((value) => value >= 0 && value <= 1));
    assert.ok(new Set(pixels).size > 1000);
    means.add(mean[0]!);
  }
  assert.equal(means.size, 20);
});
