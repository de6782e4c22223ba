/** Tests of loss functions on their way to a worker: which travel, and how others are refused. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import {
  fromPortable,
  type FunctionLike,
  type PortableFunction,
  toPortable,
} from "../../stages/functions.ts";
import { type LossFunction, silenceBanner } from "../../stages/tfjs.ts";
import { scaledError } from "./own_functions.ts";

await tf.setBackend("cpu");
silenceBanner();

const MODULE = import.meta.resolve("./own_functions.ts");
const TARGET = [[1, 0], [0, 1]];
const OUTPUT = [[0.75, 0.5], [0.25, 0.5]];

/** What a function gives for the sample. */
function valueOf(f: LossFunction): number[] {
  return tf.tidy(() => [...f(tf.tensor2d(TARGET), tf.tensor2d(OUTPUT)).dataSync()]);
}

/** Sends a function as `postMessage` would. */
async function sent(f: FunctionLike): Promise<string | LossFunction> {
  const before = tf.memory().numTensors;
  const portable = structuredClone(toPortable("loss", f));
  assert.equal(tf.memory().numTensors, before);
  return await fromPortable(portable);
}

async function travels(f: LossFunction): Promise<LossFunction> {
  const arrived = await sent(f);
  assert.equal(typeof arrived, "function");
  assert.deepEqual(valueOf(arrived as LossFunction), valueOf(f));
  return arrived as LossFunction;
}

const arrow = (target: tf.Tensor, output: tf.Tensor): tf.Tensor =>
  tf.mean(tf.abs(tf.sub(target, output)), -1);

Deno.test("an arrow function travels, types and all, and keeps its name", async () => {
  const arrived = await travels(arrow);
  assert.notEqual(arrived, arrow);
  assert.equal(arrived.name, "arrow");
});

Deno.test("functions and expressions travel, with what they hold inside", async () => {
  function declared(target: tf.Tensor, output: tf.Tensor): tf.Tensor {
    const weights: number[] = [1, 2];
    const inner = (t: tf.Tensor) => tf.mul(t, weights);
    return inner(tf.square(tf.sub(target, output)));
  }
  assert.equal((await travels(declared)).name, "declared");
  assert.equal(
    (await travels(function (a, b) {
      return tf.sub(a, b);
    })).name,
    "",
  );
  await travels((a, b) => tf.add(a, b));
  const object = { error: (a: tf.Tensor, b: tf.Tensor) => tf.sub(b, a) };
  assert.equal((await travels(object.error)).name, "error");
});

Deno.test("functions of TensorFlow.js itself travel by their place in it", async () => {
  const mse = tf.losses.meanSquaredError as unknown as LossFunction;
  assert.equal(await travels(mse), mse);
  assert.equal(await travels(tf.losses.softmaxCrossEntropy as LossFunction), tf.losses.softmaxCrossEntropy);
  assert.equal(await travels(tf.metrics.categoricalAccuracy), tf.metrics.categoricalAccuracy);
  assert.equal(await travels(tf.squaredDifference as LossFunction), tf.squaredDifference);
});

Deno.test("names pass through, and functions of modules are imported", async () => {
  assert.equal(await sent("meanSquaredError"), "meanSquaredError");
  const arrived = await sent({ module: MODULE, name: "scaledError" });
  assert.equal(arrived, scaledError);
  assert.deepEqual(toPortable("loss", { module: MODULE, name: "scaledError", more: 1 } as FunctionLike), {
    module: MODULE,
    name: "scaledError",
  });
});

Deno.test("a function that a module does not export is refused, with what it exports", async () => {
  const refuses = (name: string) =>
    assert.rejects(fromPortable({ module: MODULE, name }), {
      name: "TypeError",
      message: `Cannot find function "${name}" in ${MODULE}: it exports scaledError, weight`,
    });
  await refuses("scaledEror");
  await refuses("weight");
});

const REMEDY = (name: string) =>
  `export it from a module and pass { module: import.meta.resolve("./file.ts"), name: "${name}" }`;

function refuses(f: unknown, message: string | RegExp, what = "loss"): void {
  const before = tf.memory().numTensors;
  assert.throws(() => toPortable(what, f as FunctionLike), { name: "TypeError", message });
  assert.equal(tf.memory().numTensors, before);
}

Deno.test("a function that uses a variable or an import from outside is refused, with the remedy", () => {
  const factor = 2;
  const closure = (a: tf.Tensor, b: tf.Tensor) => tf.mul(tf.sub(a, b), factor);
  refuses(
    closure,
    'Cannot send loss "closure" to a worker: it uses something outside itself (factor is not defined); ' +
      REMEDY("closure"),
  );
  const helper = (a: tf.Tensor, b: tf.Tensor) => scaledError(a, b);
  refuses(helper, /Cannot send metric "helper" .* \(scaledError is not defined\)/, "metric");
  refuses(scaledError, /Cannot send loss "scaledError" .* \(SCALE is not defined\)/);
});

Deno.test("a function that means another thing on its own is refused", () => {
  const name = 3; // `name` is a global, and no number
  const shadowed = (a: tf.Tensor, b: tf.Tensor) => tf.mul(tf.sub(a, b), name as number);
  refuses(shadowed, /^Cannot send loss "shadowed" to a worker: /);
  const length = 2; // so may `length` be: undefined, from which tfjs makes NaN or an error
  refuses(
    (a: tf.Tensor, b: tf.Tensor) => tf.mul(tf.add(a, b), length * 1),
    /^Cannot send loss "anonymous" to a worker: /,
  );
  const g = globalThis as unknown as { staggerTestFactor?: number };
  const staggerTestFactor = 5;
  g.staggerTestFactor = 7;
  try {
    const other = (a: tf.Tensor, b: tf.Tensor) => tf.mul(tf.add(a, b), staggerTestFactor);
    refuses(other, `Cannot send loss "other" to a worker: on its own it gives 7 for 5; ${REMEDY("other")}`);
    g.staggerTestFactor = NaN;
    refuses(other, `Cannot send loss "other" to a worker: on its own it gives NaN for 5; ${REMEDY("other")}`);
  } finally {
    delete g.staggerTestFactor;
  }
});

Deno.test("a method, a bound and a native function are refused: their source does not stand alone", () => {
  const object = {
    method(a: tf.Tensor, b: tf.Tensor): tf.Tensor {
      return tf.sub(a, b);
    },
  };
  refuses(
    object.method,
    /^Cannot send loss "method" to a worker: its source does not stand alone \(.*\); export it/,
  );
  refuses(arrow.bind(null), /^Cannot send loss "bound arrow" to a worker: its source does not stand alone/);
  refuses(Math.max, /^Cannot send loss "max" to a worker: its source does not stand alone/);
});

Deno.test("a function that wants other shapes than the sample's is left to the worker", async () => {
  const wide = (a: tf.Tensor, b: tf.Tensor): tf.Tensor => tf.matMul(a as tf.Tensor2D, tf.reshape(b, [7, 1]));
  assert.equal(typeof await sent(wide), "function");
});

Deno.test("a loss that cannot train is refused: no tensor, or no gradient to the predictions", () => {
  const five = (() => 5) as unknown as LossFunction;
  assert.throws(
    () => toPortable("loss", five),
    /^TypeError: Cannot use loss "five": it gives 5, expected a tensor/,
  );
  const aside = (target: tf.Tensor) => tf.mean(target);
  const rounded = (target: tf.Tensor, output: tf.Tensor) =>
    tf.squaredDifference(target, tf.argMax(output, -1));
  for (const [name, loss] of Object.entries({ aside, rounded })) {
    const message = new RegExp(`^TypeError: Cannot train on loss "${name}": no gradient flows through it`);
    assert.throws(() => toPortable("loss", loss), message);
    toPortable("metric", loss); // which need not train
  }
});

Deno.test("what is no function is refused by value", () => {
  for (const value of [7, null, {}, { module: "x" }, { name: "f" }, ["mse"]]) {
    refuses(
      value,
      `Cannot use ${JSON.stringify(value)} as metric: expected a name, a function or { module, name }`,
      "metric",
    );
  }
  const portable: PortableFunction = toPortable("loss", "hinge");
  assert.equal(portable, "hinge");
});
