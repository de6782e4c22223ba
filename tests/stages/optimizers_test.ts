/** Tests of optimizers: what `compile` accepts, and each update rule over 20 steps. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import {
  currentLearningRate,
  type OptimizerConfig,
  type OptimizerSpec,
  optimizerSpec,
  updateRule,
} from "../../stages/optimizers.ts";
import { silenceBanner } from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();

const STEPS = 20;
const START = [0.5, -1.25, 2, 0];

/** Gradients of step `i`: of both signs, some of them zero, of different sizes. */
function gradient(i: number): number[] {
  return START.map((_, j) => j === 3 && i % 3 !== 0 ? 0 : Math.sin(i * 1.7 + j) * 10 ** (j - 2));
}

/** A weight's values after each step of a rule. */
function ran(spec: OptimizerSpec, rates: (i: number) => number = () => spec.learningRate): number[][] {
  const rule = updateRule(spec);
  const before = tf.memory().numTensors;
  let weight: tf.Tensor = tf.tensor1d(START);
  let slots: tf.Tensor[] = rule.slots.map(({ initial }) => tf.fill(weight.shape, initial));
  const values: number[][] = [];
  for (let i = 0; i < STEPS; i++) {
    const next = tf.tidy(() => {
      const scalars = rule.scalars({ learningRate: rates(i), iteration: i });
      const tensors = Object.fromEntries(
        Object.entries(scalars).map(([name, value]) => [name, tf.scalar(value)]),
      );
      const after = rule.apply(weight, tf.tensor1d(gradient(i)), slots, tensors);
      assert.equal(after.slots.length, rule.slots.length);
      return [after.weight, ...after.slots];
    });
    tf.dispose([weight, ...slots]);
    [weight, ...slots] = next as [tf.Tensor, ...tf.Tensor[]];
    values.push([...weight.dataSync()]);
  }
  tf.dispose([weight, ...slots]);
  assert.equal(tf.memory().numTensors, before);
  return values;
}

/** The same by tfjs's own optimizer. */
function reference(optimizer: tf.Optimizer): number[][] {
  const weight = tf.variable(tf.tensor1d(START));
  const values: number[][] = [];
  for (let i = 0; i < STEPS; i++) {
    tf.tidy(() => optimizer.applyGradients({ [weight.name]: tf.tensor1d(gradient(i)) }));
    values.push([...weight.dataSync()]);
  }
  weight.dispose();
  optimizer.dispose();
  return values;
}

function close(actual: number[][], expected: number[][], tolerance = 2e-6): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((values, i) =>
    values.forEach((value, j) => {
      const off = Math.abs(actual[i]![j]! - value);
      assert.ok(off <= tolerance * Math.max(1, Math.abs(value)), `step ${i}: ${actual[i]}, not ${values}`);
    })
  );
}

const OPTIMIZERS: Readonly<Record<string, () => tf.Optimizer>> = {
  "sgd": () => tf.train.sgd(0.1),
  "momentum": () => tf.train.momentum(0.1, 0.8),
  "momentum, Nesterov": () => tf.train.momentum(0.1, 0.8, true),
  "adam": () => tf.train.adam(0.05, 0.8, 0.99, 1e-4),
  "adam with its defaults": () => tf.train.adam(),
  "adamax": () => tf.train.adamax(0.05, 0.8, 0.9, 1e-5, 0.1),
  "rmsprop": () => tf.train.rmsprop(0.01, 0.8),
  "rmsprop with momentum": () => tf.train.rmsprop(0.01, 0.8, 0.5, 1e-4),
  "adagrad": () => tf.train.adagrad(0.1, 0.3),
  "adagrad from nothing": () => tf.train.adagrad(0.1, 0),
  "adadelta": () => tf.train.adadelta(0.5, 0.8, 1e-4),
};

for (const [name, make] of Object.entries(OPTIMIZERS)) {
  Deno.test(`20 steps equal those of tf.train: ${name}`, () => {
    const optimizer = make();
    const spec = optimizerSpec(optimizer);
    close(ran(spec), reference(optimizer));
    assert.notDeepEqual(ran(spec).at(-1), START);
  });
}

for (const name of ["sgd", "adam", "rmsprop", "adagrad", "adadelta", "adamax"]) {
  Deno.test(`"${name}" has the defaults of tfjs-layers`, () => {
    const model = tf.sequential({ layers: [tf.layers.dense({ units: 1, inputShape: [1] })] });
    model.compile({ optimizer: name, loss: "meanSquaredError" });
    close(ran(optimizerSpec(name)), reference(model.optimizer));
    model.dispose();
  });
}

/** Runs a rule written for one number on every number of the weight. */
function byHand(
  step: (w: number, g: number, state: Record<string, number>, t: number) => number,
): number[][] {
  const states: Record<string, number>[] = START.map(() => ({}));
  let weight = START;
  return Array.from({ length: STEPS }, (_, i) => {
    const g = gradient(i);
    weight = weight.map((w, j) => step(w, g[j]!, states[j]!, i + 1));
    return weight;
  });
}

Deno.test("adamw is PyTorch's: weights decay apart from the gradient, by the learning rate", () => {
  const [lr, b1, b2, eps, decay] = [0.05, 0.8, 0.95, 1e-6, 0.3];
  const expected = byHand((w, g, s, t) => {
    w -= lr * decay * w;
    s["m"] = b1 * (s["m"] ?? 0) + (1 - b1) * g;
    s["v"] = b2 * (s["v"] ?? 0) + (1 - b2) * g * g;
    return w - lr * (s["m"] / (1 - b1 ** t)) / (Math.sqrt(s["v"] / (1 - b2 ** t)) + eps);
  });
  const config: OptimizerConfig = { name: "adamw", learningRate: lr, beta1: b1, beta2: b2, epsilon: eps };
  close(ran(optimizerSpec({ ...config, weightDecay: decay })), expected);
});

for (const nesterov of [false, true]) {
  Deno.test(`sgd with momentum and weight decay is PyTorch's${nesterov ? ", Nesterov's too" : ""}`, () => {
    const [lr, momentum, decay] = [0.1, 0.7, 0.2];
    const expected = byHand((w, g, s) => {
      g += decay * w;
      s["b"] = s["b"] === undefined ? g : momentum * s["b"] + g;
      return w - lr * (nesterov ? g + momentum * s["b"] : s["b"]);
    });
    for (const name of ["sgd", "momentum"] as const) {
      close(ran(optimizerSpec({ name, learningRate: lr, momentum, weightDecay: decay, nesterov })), expected);
    }
  });
}

Deno.test("weight decay of adam is added to the gradient, unlike adamw's", () => {
  const expected = byHand((w, g, s, t) => {
    g += 0.1 * w;
    s["m"] = 0.9 * (s["m"] ?? 0) + 0.1 * g;
    s["v"] = 0.999 * (s["v"] ?? 0) + 0.001 * g * g;
    return w - 0.01 * (s["m"] / (1 - 0.9 ** t)) / (Math.sqrt(s["v"] / (1 - 0.999 ** t)) + 1e-7);
  });
  const options = { learningRate: 0.01, weightDecay: 0.1 };
  close(ran(optimizerSpec({ name: "adam", ...options })), expected);
  assert.notDeepEqual(
    ran(optimizerSpec({ name: "adamw", ...options })),
    ran(optimizerSpec({ name: "adam", ...options })),
  );
});

Deno.test("rmsprop, centred, is TensorFlow's, and leaves a weight without gradient where it is", () => {
  const expected = byHand((w, g, s) => {
    s["rms"] = 0.8 * (s["rms"] ?? 0) + 0.2 * g * g;
    s["mean"] = 0.8 * (s["mean"] ?? 0) + 0.2 * g;
    s["v"] = 0.5 * (s["v"] ?? 0) + 0.01 * g / Math.sqrt(s["rms"] - s["mean"] ** 2 + 1e-3);
    return w - s["v"];
  });
  const optimizer = tf.train.rmsprop(0.01, 0.8, 0.5, 1e-3, true);
  const spec = optimizerSpec(optimizer);
  close(ran(spec), expected);
  // tfjs-core's own agrees where epsilon is small against the variance.
  const small = { ...spec, epsilon: 1e-12 };
  const own = reference(tf.train.rmsprop(0.01, 0.8, 0.5, 1e-12, true));
  close(ran(small).map((w) => w.slice(1, 3)), own.map((w) => w.slice(1, 3)));
});

Deno.test("adadelta keeps means of squared gradients and of squared updates apart", () => {
  tf.tidy(() => {
    // From zeros, with the order of tfjs-core, both stay alike and the rule is plain gradient descent.
    const [rho, eps, w, g, g0, u0] = [0.8, 1e-3, 2, 3, 0.5, 0.1];
    const rule = updateRule(optimizerSpec({ name: "adadelta", rho, epsilon: eps }));
    const slots = [tf.tensor1d([g0]), tf.tensor1d([u0])];
    const after = rule.apply(tf.tensor1d([w]), tf.tensor1d([g]), slots, { learningRate: tf.scalar(0.5) });
    const update = Math.sqrt(u0 + eps) / Math.sqrt(g0 + eps) * g;
    const expected = [w - 0.5 * update, rho * g0 + (1 - rho) * g * g, rho * u0 + (1 - rho) * update ** 2];
    close([[after.weight, ...after.slots].map((t) => t.dataSync()[0]!)], [expected]);
  });
});

Deno.test("the learning rate may change from step to step", () => {
  const rates = (i: number) => 0.1 / (i + 1);
  const expected = byHand((w, g, s, t) => w - rates(t - 1) * (s["v"] = 0.9 * (s["v"] ?? 0) + g));
  close(ran(optimizerSpec("momentum"), rates), expected);
  const constant = optimizerSpec({ name: "adam", learningRate: 7 });
  assert.notDeepEqual(ran(constant, rates), ran(constant));
});

Deno.test("optimizerSpec() fills in what an object leaves open, undefined values among it", () => {
  const { learningRate, beta1, epsilon, weightDecay } = optimizerSpec({
    name: "adamw",
    beta1: undefined as never,
  });
  assert.deepEqual([learningRate, beta1, epsilon, weightDecay], [0.001, 0.9, 1e-8, 0.01]);
  assert.equal(optimizerSpec("Adam").name, "adam");
  assert.equal(optimizerSpec("RMSProp").decay, 0.9);
  assert.equal(optimizerSpec("adadelta").rho, 0.95);
  assert.deepEqual(optimizerSpec(optimizerSpec("adamax")), optimizerSpec("adamax"));
  assert.deepEqual(structuredClone(optimizerSpec("adagrad")), optimizerSpec("adagrad"));
});

Deno.test("currentLearningRate() follows what a callback sets", () => {
  for (const make of Object.values(OPTIMIZERS)) {
    const optimizer = make();
    const spec = optimizerSpec(optimizer);
    assert.equal(currentLearningRate(optimizer, spec), spec.learningRate);
    (optimizer as unknown as { learningRate: number }).learningRate = 0.125;
    assert.equal(currentLearningRate(optimizer, spec), 0.125);
    optimizer.dispose();
  }
  const config = { name: "sgd" as const, learningRate: 0.5 };
  const spec = optimizerSpec(config);
  config.learningRate = 0.25;
  assert.equal(currentLearningRate(config, spec), 0.25);
  assert.equal(currentLearningRate("sgd", spec), 0.5);
  assert.equal(currentLearningRate({ name: "sgd" }, optimizerSpec("sgd")), 0.01);
});

Deno.test("optimizerSpec() refuses what it does not know, by name", () => {
  const names = "expected one of sgd, momentum, adam, adamw, rmsprop, adagrad, adadelta, adamax, " +
    "a tf.train optimizer, or { name, learningRate, ... }";
  const refuses = (optimizer: unknown, message: string) =>
    assert.throws(() => optimizerSpec(optimizer as string), { name: "TypeError", message });
  refuses("lion", `Cannot use optimizer "lion": ${names}`);
  refuses({ name: "lamb" }, `Cannot use optimizer "lamb": ${names}`);
  refuses({ learningRate: 1 }, `Cannot use optimizer {"learningRate":1}: ${names}`);
  refuses(undefined, `Cannot use optimizer undefined: ${names}`);
  refuses(null, `Cannot use optimizer null: ${names}`);
  refuses(
    { name: "sgd", lr: 0.1 },
    'Cannot use option "lr" of optimizer "sgd": expected some of learningRate, momentum, nesterov, ' +
      "weightDecay, beta1, beta2, epsilon, decay, centered, rho, initialAccumulatorValue",
  );
});

Deno.test("optimizerSpec() refuses values out of their range", () => {
  const refuses = (config: Partial<OptimizerConfig>, message: RegExp) =>
    assert.throws(() => optimizerSpec({ name: "adam", ...config }), { name: "RangeError", message });
  for (const value of [-1, NaN, Infinity]) {
    refuses(
      { learningRate: value },
      /Cannot use learningRate .* in optimizer "adam": expected a number >= 0/,
    );
    refuses({ weightDecay: value }, /Cannot use weightDecay .* in optimizer "adam": expected a number >= 0/);
  }
  for (const key of ["momentum", "beta1", "beta2"] as const) {
    for (const value of [-0.1, 1, NaN]) {
      refuses({ [key]: value }, new RegExp(`Cannot use ${key} .*: expected a number from 0 to below 1`));
    }
  }
  refuses({ rho: 1.1 }, /Cannot use rho 1\.1/);
  refuses({ epsilon: -1e-9 }, /Cannot use epsilon/);
  assert.equal(optimizerSpec({ name: "adadelta", rho: 1, learningRate: 0 }).rho, 1);
});
