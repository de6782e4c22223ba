/** Tests of the initial weights: their statistics, seeds and the config that they are saved as. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import {
  type Initializer,
  KAIMING_FAN_OUT,
  layerSeed,
  LINEAR,
  type VarianceScaling,
  varianceScaling,
} from "../../stages/initializers.ts";
import { silenceBanner } from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();

/** fanIn 9 * 128, fanOut 9 * 512. */
const KERNEL = [3, 3, 128, 512];

/** Of a [4, 1] kernel: x * sqrt(3) / 2**32 - sqrt(3) / 2 for x of sfc32(0, 1, 0, 1) after 12 rounds. */
const FIRST_NUMBERS = [
  -0.05457679554820061,
  -0.11096801608800888,
  -0.17738068103790283,
  -0.14826396107673645,
];

const NORMAL: VarianceScaling = { scale: 2, mode: "fanOut", distribution: "normal" };

function draw(initializer: Initializer, shape = KERNEL): Float32Array {
  const tensor = initializer.apply(shape);
  const values = tensor.dataSync() as Float32Array;
  tensor.dispose();
  return values;
}

function moments(values: Float32Array): { mean: number; std: number; kurtosis: number; bound: number } {
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  const fourth = values.reduce((sum, x) => sum + (x - mean) ** 4, 0) / values.length;
  const bound = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  return { mean, std: Math.sqrt(variance), kurtosis: fourth / variance ** 2, bound };
}

function near(actual: number, expected: number, tolerance: number, what: string): void {
  assert.ok(Math.abs(actual - expected) <= tolerance, `${what}: expected ${expected}, got ${actual}`);
}

Deno.test("varianceScaling() draws a normal distribution that is cut off at two sigma", () => {
  const sigma = Math.sqrt(2 / (9 * 512));
  const values = draw(varianceScaling({ ...NORMAL, seed: 7 }));
  const { mean, std, kurtosis, bound } = moments(values);
  near(mean / sigma, 0, 5 / Math.sqrt(values.length), "mean");
  // Moments of the standard normal distribution cut off at 2: variance 0.77374, kurtosis 2.36554.
  near(std / sigma, Math.sqrt(0.773741), 0.002, "standard deviation");
  near(kurtosis, 2.36554, 0.01, "kurtosis");
  assert.ok(bound <= 2 * sigma * (1 + 1e-6) && bound > 1.999 * sigma, `bound ${bound / sigma} sigma`);
  assert.ok(new Set(values).size > 0.9 * values.length, "the table's intervals are filled");
});

Deno.test("varianceScaling() draws from the distribution that tfjs-layers draws from", () => {
  for (const distribution of ["normal", "uniform"] as const) {
    for (const mode of ["fanIn", "fanOut", "fanAvg"] as const) {
      for (const shape of [[256, 400], [3, 3, 50, 200], [90_000]]) {
        const config = { scale: 1.5, mode, distribution };
        const ours = draw(varianceScaling({ ...config, seed: 11 }), shape).sort();
        const theirs = draw(tf.initializers.varianceScaling({ ...config, seed: 11 }), shape).sort();
        // Two samples of one distribution: their quantiles agree.
        const scale = theirs.at(-1)!;
        for (let q = 0; q <= 20; q++) {
          const i = Math.round(q / 20 * (ours.length - 1));
          near(
            ours[i]! / scale,
            theirs[i]! / scale,
            0.015,
            `${distribution} ${mode} [${shape}] quantile ${q / 20}`,
          );
        }
      }
    }
  }
});

Deno.test("KAIMING_FAN_OUT has the variance of PyTorch's kaiming_normal_", () => {
  const { std } = moments(draw(varianceScaling({ ...KAIMING_FAN_OUT, seed: 3 })));
  near(std / Math.sqrt(2 / (9 * 512)), 1, 0.002, "standard deviation");
});

Deno.test("LINEAR has the bounds of PyTorch's Linear", () => {
  const { mean, std, bound } = moments(draw(varianceScaling({ ...LINEAR, seed: 3 }), [2048, 200]));
  const limit = 1 / Math.sqrt(2048);
  near(mean / limit, 0, 0.005, "mean");
  near(std / limit, 1 / Math.sqrt(3), 0.002, "standard deviation");
  assert.ok(bound <= limit * (1 + 1e-6) && bound > 0.999 * limit, `bound ${bound / limit} of the limit`);
});

Deno.test("varianceScaling() repeats itself with a seed and not without one", () => {
  const seeded = () => draw(varianceScaling({ ...NORMAL, seed: 5 }), [100]);
  const free = varianceScaling(NORMAL);
  assert.deepEqual(seeded(), seeded());
  assert.notDeepEqual(draw(free, [100]), draw(free, [100]));
  assert.deepEqual(
    [...draw(varianceScaling({ scale: 1, mode: "fanIn", distribution: "uniform", seed: 1 }), [4, 1])],
    FIRST_NUMBERS,
  );
});

Deno.test("varianceScaling() draws unrelated numbers from seeds that differ in one bit", () => {
  const seeds = [...Array(32).keys()].map((bit) => 2 ** bit).concat(0, 2 ** 40, Number.MAX_SAFE_INTEGER);
  const draws = seeds.map((seed) => draw(varianceScaling({ ...NORMAL, seed }), [10_000]));
  const variance = moments(draws[0]!).std ** 2;
  for (const [i, a] of draws.entries()) {
    for (const [j, b] of draws.slice(0, i).entries()) {
      const covariance = a.reduce((sum, x, k) => sum + x * b[k]!, 0) / a.length;
      near(covariance / variance, 0, 0.055, `correlation of seeds ${seeds[i]} and ${seeds[j]}`);
    }
  }
});

Deno.test("varianceScaling() draws neighbours that do not depend on each other", () => {
  const values = draw(varianceScaling({ ...NORMAL, seed: 2 }));
  const variance = moments(values).std ** 2;
  for (const lag of [1, 2, 3, 512, 1024, 65_536]) {
    let sum = 0;
    for (let i = lag; i < values.length; i++) sum += values[i]! * values[i - lag]!;
    near(sum / (values.length - lag) / variance, 0, 0.007, `correlation at lag ${lag}`);
  }
});

Deno.test("layerSeed() differs between layers and models, and tfjs-layers takes it for a seed", () => {
  const layers = [...Array(500).keys()].flatMap((i) => [`conv${i}`, `conv${i}_bn`]);
  const seeds = [0, 1, 2, 12].flatMap((seed) => layers.map((layer) => layerSeed(seed, layer)));
  assert.equal(new Set(seeds).size, seeds.length);
  assert.ok(seeds.every((seed) => Number.isInteger(seed) && seed > 0 && seed < 2 ** 32));
  assert.equal(layerSeed(1, "conv1"), layerSeed(1, "conv1"));
});

Deno.test("varianceScaling() saves as the initializer of tfjs-layers", () => {
  const config = { ...KAIMING_FAN_OUT, seed: 9 };
  const initializer = varianceScaling(config);
  const stock = tf.initializers.varianceScaling(config);
  assert.equal(initializer.getClassName(), "VarianceScaling");
  assert.deepEqual(initializer.getConfig(), stock.getConfig());
  const layer = tf.layers.dense({ units: 3, inputShape: [4], kernelInitializer: initializer });
  assert.deepEqual(layer.getConfig().kernelInitializer, { className: "VarianceScaling", config });
  const copy = tf.layers.dense(layer.getConfig() as unknown as Parameters<typeof tf.layers.dense>[0]);
  const { kernelInitializer } = copy as unknown as { kernelInitializer: Initializer };
  assert.equal(kernelInitializer.constructor, stock.constructor);
});

Deno.test("varianceScaling() leaves integers to tfjs-layers", () => {
  const tensor = varianceScaling({ scale: 1000, mode: "fanIn", distribution: "normal", seed: 1 }).apply(
    [10, 10],
    "int32",
  );
  assert.equal(tensor.dtype, "int32");
  tensor.dispose();
});

Deno.test("varianceScaling() refuses options that it cannot draw from", () => {
  const refuses = (options: Record<string, unknown>, message: RegExp) =>
    assert.throws(() => varianceScaling({ ...NORMAL, ...options } as VarianceScaling), (error: Error) => {
      assert.ok(error instanceof RangeError);
      assert.match(error.message, message);
      return true;
    });
  refuses({ scale: 0 }, /expected "scale" above 0: got 0/);
  refuses({ scale: NaN }, /expected "scale" above 0: got NaN/);
  refuses({ mode: "fan_in" }, /expected "mode" "fanIn", "fanOut" or "fanAvg": got "fan_in"/);
  refuses({ distribution: "cauchy" }, /expected "distribution" "normal" or "uniform": got "cauchy"/);
  refuses({ seed: -1 }, /expected "seed" to be an integer from 0 to 9007199254740991: got -1; leave it out/);
  refuses({ seed: 1.5 }, /got 1.5/);
});
