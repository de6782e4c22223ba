/** Tests of the losses and metrics of segmentation: values, gradients, extremes, and their way to workers. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { fromPortable, toPortable } from "../../stages/functions.ts";
import { portableLosses, resolveLosses } from "../../stages/losses.ts";
import { bceDiceLoss, binaryCrossentropyFromLogits, dice, diceLoss, iou } from "../../stages/segmentation.ts";
import { type LossFunction, silenceBanner } from "../../stages/tfjs.ts";
import { numbers } from "../tensorflow/engine.ts";
import { checkGradient, plain } from "../numerics/differences.ts";

await tf.setBackend("cpu");
silenceBanner();

const LOSSES: readonly LossFunction[] = [binaryCrossentropyFromLogits, diceLoss, bceDiceLoss];
const ALL: readonly LossFunction[] = [...LOSSES, iou, dice];

/** What a function gives for masks and logits of `shape`, without the batch axis. */
function values(f: LossFunction, masks: number[][], logits: number[][], shape: number[]): number[] {
  return tf.tidy(() => {
    const result = f(
      tf.tensor(masks.flat(), [masks.length, ...shape]),
      tf.tensor(logits.flat(), [logits.length, ...shape]),
    );
    assert.deepEqual(result.shape, [masks.length]);
    return [...result.dataSync()];
  });
}

function close(actual: number[], expected: number[], tolerance = 1e-6): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((value, i) => {
    assert.ok(Math.abs(actual[i]! - value) <= tolerance, `${i}: ${actual[i]}, not ${value}`);
  });
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const crossentropy = (z: number, x: number) => -Math.log(z === 1 ? sigmoid(x) : 1 - sigmoid(x));

/** Two images of two by two pixels. */
const MASKS = [[1, 0, 0, 1], [0, 0, 0, 0]];
const LOGITS = [[2, -1, 0.5, 0], [-3, 0, 1, -0.25]];

function softDice(masks: number[], logits: number[]): number {
  const p = logits.map(sigmoid);
  const both = masks.reduce((sum, g, i) => sum + g * p[i]!, 0);
  const squares = p.reduce((sum, x) => sum + x * x, 0) + masks.reduce((sum, g) => sum + g * g, 0);
  return 1 - (2 * both + 1) / (squares + 1);
}

const BCE = MASKS.map((mask, i) => mask.reduce((sum, z, k) => sum + crossentropy(z, LOGITS[i]![k]!), 0) / 4);
const DICE = MASKS.map((mask, i) => softDice(mask, LOGITS[i]!));

Deno.test("the losses of segmentation give their formulas, one value for each image", () => {
  close(values(binaryCrossentropyFromLogits, MASKS, LOGITS, [2, 2, 1]), BCE);
  close(values(diceLoss, MASKS, LOGITS, [2, 2, 1]), DICE);
  close(values(bceDiceLoss, MASKS, LOGITS, [2, 2, 1]), [BCE[0]! + DICE[0]!, BCE[1]! + DICE[1]!]);
  // By hand: log 2 for every pixel; p = 1/2 everywhere, so (2 * 1 + 1) / (1 + 2 + 1) and 1 / (1 + 0 + 1).
  const zeros = [[0, 0, 0, 0], [0, 0, 0, 0]];
  close(values(binaryCrossentropyFromLogits, MASKS, zeros, [2, 2, 1]), [Math.LN2, Math.LN2]);
  close(values(diceLoss, MASKS, zeros, [2, 2, 1]), [0.25, 0.5]);
});

Deno.test("losses and metrics of several classes are means over the classes", () => {
  // Two pixels of two classes: class 0 is [1, 0], class 1 is [0, 1].
  const [masks, logits] = [[1, 0, 0, 1], [2, -1, 0.5, 0]];
  const classes = [[[1, 0], [2, 0.5]], [[0, 1], [-1, 0]]] as const;
  const soft = classes.reduce((sum, [g, x]) => sum + softDice([...g], [...x]), 0) / 2;
  close(values(diceLoss, [masks], [logits], [1, 2, 2]), [soft]);
  close(values(bceDiceLoss, [masks], [logits], [1, 2, 2]), [soft + BCE[0]!]);
  // Class 0 finds both pixels, of which one is right; class 1 finds none.
  close(values(iou, [masks], [logits], [1, 2, 2]), [(1 / 2 + 0) / 2]);
  close(values(dice, [masks], [logits], [1, 2, 2]), [(2 / 3 + 0) / 2]);
});

Deno.test("iou() and dice() compare masks at a logit of 0", () => {
  const masks = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]];
  const logits = [[1, 5, -1, 2], [3, 1e-3, -1e-3, 0], [-1, 2, 3, -4], [-1, -2, 0, -3], [-1, 2, -1, -1]];
  close(values(iou, masks, logits, [2, 2, 1]), [2 / 4, 1, 0, 1, 0]);
  close(values(dice, masks, logits, [2, 2, 1]), [4 / 6, 1, 0, 1, 0]);
});

Deno.test("the gradients of the losses are the slopes of their values", () => {
  const [shape, count] = [[3, 2, 4, 2], 48];
  const masks = numbers(count, 5).map((x) => x > 0 ? 1 : 0);
  for (const loss of LOSSES) {
    tf.tidy(() =>
      checkGradient({
        name: loss.name,
        inputs: [{ ...plain(shape), values: numbers(count, 6).map((x) => 3 * x), step: 0.1 }],
        op: (logits) => loss(tf.tensor(masks, shape), logits!),
      })
    );
  }
});

/** Gradient of the sum of a loss over all images. */
function gradient(loss: LossFunction, masks: number[][], logits: number[][]): number[] {
  return tf.tidy(() => {
    const shape = [masks.length, masks[0]!.length, 1];
    const f = (x: tf.Tensor) => tf.sum(loss(tf.tensor(masks.flat(), shape), x)) as tf.Scalar;
    return [...tf.grad(f)(tf.tensor(logits.flat(), shape)).dataSync()];
  });
}

Deno.test("binaryCrossentropyFromLogits() has the slope sigmoid - mask, at 0 too", () => {
  const expected = MASKS.flatMap((mask, i) => mask.map((z, k) => (sigmoid(LOGITS[i]![k]!) - z) / 4));
  close(gradient(binaryCrossentropyFromLogits, MASKS, LOGITS), expected);
});

Deno.test("extreme logits give neither NaN nor infinity, and lose nothing", () => {
  const [masks, logits] = [[[1, 0, 1, 0]], [[100, -100, -100, 100]]];
  close(values(binaryCrossentropyFromLogits, masks, logits, [4, 1]), [50]);
  close(values(diceLoss, masks, logits, [4, 1]), [1 - 3 / 5]);
  close(values(bceDiceLoss, masks, logits, [4, 1]), [50.4], 1e-5);
  close(gradient(binaryCrossentropyFromLogits, masks, logits), [0, 0, -0.25, 0.25]);
  for (const loss of LOSSES) assert.ok(gradient(loss, masks, logits).every(Number.isFinite), loss.name);
  // exp(-30) / 1, which 1 - sigmoid(30) has lost in single precision.
  const [small] = values(binaryCrossentropyFromLogits, [[1]], [[30]], [1, 1]);
  assert.ok(Math.abs(small! / Math.exp(-30) - 1) < 1e-5, `${small}`);
  for (const metric of [iou, dice]) {
    for (const value of values(metric, masks, logits, [4, 1])) assert.ok(Number.isFinite(value));
  }
});

Deno.test("each image's value is the same in a batch and in parts of it", () => {
  const shape = [4, 4, 2];
  const rows = (seed: number) => Array.from({ length: 5 }, (_, i) => [...numbers(32, seed + i)]);
  const masks = rows(10).map((row) => row.map((x) => x > 0 ? 1 : 0));
  const logits = rows(20).map((row) => row.map((x) => 4 * x));
  for (const f of ALL) {
    const whole = values(f, masks, logits, shape);
    const parts = [[0, 2], [2, 3], [3, 5]].flatMap(([a, b]) =>
      values(f, masks.slice(a, b), logits.slice(a, b), shape)
    );
    assert.deepEqual(parts, whole, f.name);
    assert.equal(new Set(whole).size, 5, f.name);
  }
});

Deno.test("losses and metrics of segmentation travel to workers by their source, and by their module", async () => {
  const module = import.meta.resolve("../../stages/segmentation.ts");
  for (const f of ALL) {
    const portable = structuredClone(toPortable(LOSSES.includes(f) ? "loss" : "metric", f));
    assert.equal(typeof portable === "object" && "source" in portable, true);
    const arrived = await fromPortable(portable) as LossFunction;
    assert.notEqual(arrived, f);
    assert.equal(arrived.name, f.name);
    const named = await fromPortable({ module, name: f.name }) as LossFunction;
    const expected = values(f, MASKS, LOGITS, [2, 2, 1]);
    assert.deepEqual(values(arrived, MASKS, LOGITS, [2, 2, 1]), expected);
    assert.deepEqual(values(named, MASKS, LOGITS, [2, 2, 1]), expected);
  }
});

Deno.test("metrics of segmentation are reported by their names", async () => {
  const portable = structuredClone(portableLosses({ loss: bceDiceLoss, metrics: [iou, dice, diceLoss] }));
  const { losses, names } = await resolveLosses([{ name: "head", shape: [null, 2, 2, 1] }], portable);
  assert.deepEqual(names, ["loss", "iou", "dice", "diceLoss"]);
  assert.equal(losses.length, 1);
});
