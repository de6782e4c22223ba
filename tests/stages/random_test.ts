/** Tests of the counter-based random numbers, and of the layers that draw them. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { type ForwardContext, withContext } from "../../stages/context.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import {
  blocksPerSample,
  philoxUniform,
  type RandomPosition,
  streamCounter,
  streamKey,
} from "../../stages/random.ts";
import { layerClass, silenceBanner } from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();
registerLayers();

/** Random123's known answers for Philox4x32-10: counter, key and the four words that come out. */
const KNOWN: readonly (readonly [counter: bigint[], key: bigint, words: number[]])[] = [
  [[0n, 0n], 0n, [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]],
  [
    [0xffffffffffffffffn, 0xffffffffffffffffn],
    0xffffffffffffffffn,
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  // Digits of pi: counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  [
    [0x85a308d3243f6a88n, 0x0370734413198a2en],
    0x299f31d0a4093822n,
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

Deno.test("philoxUniform() has Random123's known answers, their low 23 bits as the mantissa", () => {
  for (const [[low, high], key, words] of KNOWN) {
    const expected = words.map((word) => (word & 0x7fffff) / 2 ** 23);
    assert.deepEqual([...philoxUniform(key, [low!, high!], 4)], expected);
  }
});

Deno.test("the counter goes on from number to number, and carries into its upper halves", () => {
  for (const low of [0n, 5n, 0xfffffffen, 0xffffffffn, 0xfffffffffffffffen, 0xffffffffffffffffn]) {
    const many = philoxUniform(7n, [low, 3n], 16);
    for (let block = 0n; block < 4n; block++) {
      const at = low + block;
      const own = philoxUniform(7n, [at & 0xffffffffffffffffn, 3n + (at >> 64n)], 4);
      assert.deepEqual(
        [...many.slice(4 * Number(block), 4 * Number(block) + 4)],
        [...own],
        `${low} + ${block}`,
      );
    }
  }
});

Deno.test("philoxUniform() gives the first numbers of longer draws, for any count", () => {
  const many = philoxUniform(1n, [2n, 3n], 100);
  for (const count of [0, 1, 3, 4, 5, 99]) {
    assert.deepEqual([...philoxUniform(1n, [2n, 3n], count)], [...many.slice(0, count)]);
  }
});

Deno.test("philoxUniform() is uniform on [0, 1), and neighbours do not depend on each other", () => {
  const n = 200_000;
  const values = philoxUniform(0x123456789abcdefn, [0n, 0n], n);
  const mean = values.reduce((a, b) => a + b, 0) / n;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / n;
  assert.ok(Math.abs(mean - 0.5) < 5 * Math.sqrt(1 / 12 / n), `mean ${mean}`);
  assert.ok(Math.abs(variance - 1 / 12) < 0.0005, `variance ${variance}`);
  assert.ok(values.every((x) => x >= 0 && x < 1));
  const bins = new Array(64).fill(0);
  for (const x of values) bins[Math.floor(64 * x)]++;
  const chi2 = bins.reduce((sum, k) => sum + (k - n / 64) ** 2 / (n / 64), 0);
  assert.ok(chi2 < 115, `chi-squared ${chi2}`); // 63 degrees of freedom: exceeded once in 10,000 seeds
  for (const lag of [1, 2, 3, 4, 8, 64]) {
    let sum = 0;
    for (let i = lag; i < n; i++) sum += (values[i]! - 0.5) * (values[i - lag]! - 0.5);
    assert.ok(Math.abs(12 * sum / (n - lag)) < 0.01, `correlation at lag ${lag}`);
  }
});

Deno.test("streamKey() differs by layer, seed and call, and is what it was", () => {
  const keys = new Set<bigint>();
  const layers = Array.from({ length: 200 }, (_, i) => `dropout_${i}`).concat("a", "b", "ab", "ba", "");
  for (const seed of [0, 1, -1, 12345]) {
    for (const layer of layers) for (const call of [0, 1, 2]) keys.add(streamKey({ seed, layer, call }));
  }
  assert.equal(keys.size, 4 * layers.length * 3);
  for (const key of keys) assert.ok(key >= 0n && key < 1n << 64n);
  assert.equal(
    new Set([...keys].map((key) => key >> 32n)).size,
    keys.size,
    "its upper half alone tells them apart",
  );
  assert.deepEqual(streamKey({ seed: 3, layer: "x", call: 1 }), streamKey({ seed: 3, layer: "x", call: 1 }));
});

Deno.test("streamCounter() begins each sample on a counter of its own, and each step on a high half", () => {
  assert.deepEqual([0, 1, 4, 5, 8].map(blocksPerSample), [0, 1, 1, 2, 2]);
  const at: RandomPosition = { seed: 1, layer: "x", call: 0, step: 9, firstSample: 6 };
  assert.deepEqual(streamCounter(5, at), [30n, 9n]);
  assert.deepEqual(streamCounter(2 ** 20, { ...at, firstSample: 2 ** 40 }), [2n ** 60n, 9n]); // beyond 2^53
});

/** What runtime's random sources do: rows of one micro-batch, each sample at its own counter. */
function draw(position: RandomPosition, samples: number, elements: number): number[] {
  const blocks = blocksPerSample(elements);
  const all = philoxUniform(streamKey(position), streamCounter(blocks, position), samples * blocks * 4);
  return Array.from({ length: samples }, (_, s) => [...all.slice(4 * s * blocks, 4 * s * blocks + elements)])
    .flat();
}

Deno.test("rows drawn for a batch at once are those drawn micro-batch by micro-batch", () => {
  for (const elements of [1, 3, 4, 7, 64]) {
    const position = { seed: 5, layer: "drop", call: 0, step: 2, firstSample: 0 };
    const whole = draw(position, 12, elements);
    for (const sizes of [[4, 4, 4], [5, 5, 2], [1, 11]]) {
      let firstSample = 0;
      const parts = sizes.flatMap((size) => {
        const part = draw({ ...position, firstSample }, size, elements);
        firstSample += size;
        return part;
      });
      assert.deepEqual(parts, whole, `${elements} numbers a sample, ${sizes}`);
    }
    assert.notDeepEqual(draw({ ...position, step: 3 }, 12, elements), whole);
    assert.equal(new Set(draw(position, 500, elements)).size > 490 * Math.min(elements, 4), true);
  }
});

/** Forwards of a layer while training, over micro-batches of these sizes; rows of `x` are the batch. */
function forwards(
  name: string,
  config: Record<string, unknown>,
  x: tf.Tensor,
  sizes: number[],
  layer = "layer",
) {
  const made = new (layerClass(name))({ ...config, name: layer });
  let firstSample = 0;
  const calls: { layer: string; shape: number[]; shared: boolean }[] = [];
  const parts = sizes.map((size) => {
    const first = firstSample;
    firstSample += size;
    const context: ForwardContext = {
      statistics: [],
      random: {
        uniform(layer, shape, shared = false) {
          calls.push({ layer, shape, shared });
          const [samples, ...rest] = shape;
          const elements = rest.reduce((a, b) => a * b, 1);
          const at = { seed: 1, layer, call: 0, step: 0, firstSample: shared ? 0 : first };
          return tf.tensor(draw(at, samples!, elements), shape);
        },
      },
    };
    const slice = tf.slice(x, [first], [size]);
    return withContext(context, () => made.call(slice, { training: true })) as tf.Tensor;
  });
  const y = tf.concat(parts, 0);
  const random = { uniform: () => assert.fail("it draws without training") };
  const asIs = withContext({ statistics: [], random }, () => made.call(x, { training: false })) as tf.Tensor;
  return { y, asIs, calls };
}

/** Layers, and the mean and the standard deviation of their outputs where x is 1. */
const LAYERS:
  readonly (readonly [name: string, config: Record<string, unknown>, mean: number, deviation: number])[] = [
    ["Dropout", { rate: 0.3 }, 1, Math.sqrt(0.3 / 0.7)],
    ["SpatialDropout1D", { rate: 0.3 }, 1, Math.sqrt(0.3 / 0.7)],
    ["GaussianNoise", { stddev: 0.5 }, 1, 0.5],
    ["GaussianDropout", { rate: 0.3 }, 1, Math.sqrt(0.3 / 0.7)],
  ];

for (const [name, config, mean, deviation] of LAYERS) {
  Deno.test(`${name} draws the same whatever the micro-batches, with the right mean and deviation`, () => {
    tf.tidy(() => {
      const x = tf.ones([60, 10, 40]);
      const { y, asIs } = forwards(name, config, x, [60]);
      for (const sizes of [[20, 20, 20], [25, 25, 10]]) {
        assert.deepEqual([...forwards(name, config, x, sizes).y.dataSync()], [...y.dataSync()]);
      }
      assert.notDeepEqual([...forwards(name, config, x, [60], "other").y.dataSync()], [...y.dataSync()]);
      assert.deepEqual([...asIs.dataSync()], [...x.dataSync()], "without training it changes nothing");
      const moments = tf.moments(y);
      const values = name === "SpatialDropout1D" ? 60 * 40 : y.size;
      assert.ok(Math.abs(moments.mean.dataSync()[0]! - mean) < 5 * deviation / Math.sqrt(values), "mean");
      assert.ok(
        Math.abs(Math.sqrt(moments.variance.dataSync()[0]!) - deviation) < 0.05 * deviation,
        "deviation",
      );
    });
  });
}

Deno.test("AlphaDropout keeps mean and variance of normal inputs", () => {
  tf.tidy(() => {
    const x = tf.randomNormal([100, 400], 0, 1, "float32", 3);
    const { y } = forwards("AlphaDropout", { rate: 0.2 }, x, [50, 50]);
    const { mean, variance } = tf.moments(y);
    assert.ok(Math.abs(mean.dataSync()[0]!) < 0.03 && Math.abs(variance.dataSync()[0]! - 1) < 0.05);
    assert.equal(new Set(y.dataSync()).size > 20_000, true);
  });
});

Deno.test("SpatialDropout1D drops whole channels, and a noise shape for all samples is drawn once", () => {
  tf.tidy(() => {
    const { y } = forwards("SpatialDropout1D", { rate: 0.5 }, tf.ones([8, 5, 6]), [8]);
    for (const sample of y.arraySync() as number[][][]) {
      for (const row of sample) assert.deepEqual(row, sample[0]);
    }
    const noise = forwards("Dropout", { rate: 0.5, noiseShape: [1, 6] }, tf.ones([8, 6]), [4, 4]);
    for (const row of noise.y.arraySync() as number[][]) {
      assert.deepEqual(row, (noise.y.arraySync() as number[][])[0]);
    }
    for (const sizes of [[8], [7, 1], [1, 1, 1, 1, 1, 1, 1, 1]]) {
      const again = forwards("Dropout", { rate: 0.5, noiseShape: [1, 6] }, tf.ones([8, 6]), sizes);
      assert.deepEqual([...again.y.dataSync()], [...noise.y.dataSync()], `${sizes}`);
    }
    assert.deepEqual(noise.calls, [0, 1].map(() => ({ layer: "layer", shape: [1, 1, 6], shared: true })));
  });
});

Deno.test("a rate of 0 drops nothing, and outside a stage the layers are tfjs's own", () => {
  tf.tidy(() => {
    const x = tf.ones([4, 5]);
    for (const name of ["Dropout", "GaussianDropout", "AlphaDropout"]) {
      assert.deepEqual([...forwards(name, { rate: 0 }, x, [4]).y.dataSync()], [...x.dataSync()]);
    }
    const layer = new (layerClass("Dropout"))({ rate: 0.5 });
    const y = layer.call(tf.ones([100, 10]), { training: true }) as tf.Tensor;
    assert.ok(new Set(y.dataSync()).size === 2);
  });
});
