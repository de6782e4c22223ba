/** Tests of the gradients that replace tfjs's own, and of those that several micro-batches share. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { backward, dependence, type PendingGradient, record, weightGradients } from "../../stages/tape.ts";
import { silenceBanner } from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();

type Op = (x: tf.Tensor, w: tf.Tensor) => tf.Tensor;

// deno-lint-ignore no-explicit-any
const convolution = (strides: number, pad: any): Op => (x, w) => tf.conv2d(x as any, w as any, strides, pad);
// deno-lint-ignore no-explicit-any
const product = (a = false, b = false): Op => (x, w) => tf.matMul(x as any, w as any, a, b);

interface Case {
  readonly name: string;
  readonly op: Op;
  /** One micro-batch. */
  readonly x: readonly number[];
  readonly w: readonly number[];
}

/** Ops whose weight gradient is a sum over the samples of both of its inputs. */
const JOINED: readonly Case[] = [
  { name: "matMul", op: product(), x: [3, 4], w: [4, 5] },
  { name: "conv2d, same", op: convolution(1, "same"), x: [2, 5, 6, 3], w: [3, 3, 3, 2] },
  { name: "conv2d, valid, strided", op: convolution(2, "valid"), x: [2, 7, 6, 3], w: [3, 2, 3, 2] },
  {
    name: "conv2d, explicit padding",
    op: convolution(2, [[0, 0], [1, 2], [0, 1], [0, 0]]),
    x: [2, 6, 6, 2],
    w: [3, 3, 2, 4],
  },
  { name: "conv2d of one pixel", op: convolution(1, "valid"), x: [2, 4, 4, 3], w: [1, 1, 3, 5] },
];

/** Ops where it is not. */
const APART: readonly Case[] = [
  { name: "matMul by a transposed weight", op: product(false, true), x: [3, 4], w: [5, 4] },
  { name: "matMul of a transposed input", op: product(true, false), x: [4, 3], w: [4, 5] },
  { name: "matMul with the weight first", op: (x, w) => product()(w, x), x: [4, 3], w: [5, 4] },
  { name: "matMul of three axes", op: product(), x: [2, 3, 4], w: [2, 4, 5] },
  { name: "mul", op: (x, w) => tf.mul(x, w), x: [3, 4], w: [4] },
];

function uniform(shape: readonly number[], seed: number): tf.Tensor {
  return tf.randomUniform(shape as number[], -1, 1, "float32", seed);
}

/** Gradients of `sum(op(x, w) * dy)` by finite differences of the weight's and the input's first elements. */
function differences(op: Op, x: tf.Tensor, w: tf.Tensor, dy: tf.Tensor): { x: number[]; w: number[] } {
  const f = (x: tf.Tensor, w: tf.Tensor) => tf.tidy(() => tf.sum(tf.mul(op(x, w), dy)).dataSync()[0]!);
  const slope = (t: tf.Tensor, i: number, g: (t: tf.Tensor) => number) =>
    tf.tidy(() => {
      const moved = (by: number) => {
        const values = t.dataSync().slice();
        values[i]! += by;
        return g(tf.tensor(values, t.shape));
      };
      return (moved(0.05) - moved(-0.05)) / 0.1; // linear: exact but for rounding
    });
  const some = (t: tf.Tensor) => [0, 1, t.size >> 1, t.size - 1];
  return {
    x: some(x).map((i) => slope(x, i, (x) => f(x, w))),
    w: some(w).map((i) => slope(w, i, (w) => f(x, w))),
  };
}

function near(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  label: string,
): void {
  assert.equal(actual.length, expected.length, label);
  for (let i = 0; i < expected.length; i++) {
    assert.ok(Math.abs(actual[i]! - expected[i]!) <= tolerance, `${label}: ${actual[i]}, not ${expected[i]}`);
  }
}

/** F and B of one micro-batch. */
function pendingOf(op: Op, x: tf.Tensor, w: tf.Tensor, dy: tf.Tensor) {
  const recording = record(() => [op(x, w)]);
  const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], [w.id]);
  const { pending, inputGradients } = backward(recording, [dy], [x], dependent);
  const weight = (run?: (gradient: PendingGradient) => tf.Tensor) =>
    weightGradients(recording, pending, dependent, run).get(w.id)!;
  return { recording, pending, dx: inputGradients[0]!, weight };
}

function check({ name, op, x: shape, w: weight }: Case, joined: boolean): void {
  registerLayers();
  const w = uniform(weight, 1);
  const xs = [0, 1, 2].map((i) => uniform(shape, 10 + i));
  const before = tf.memory().numTensors;
  const opened = tf.tidy(() => {
    const dys = xs.map((x, i) => uniform(op(x, w).shape, 20 + i));
    const parts = xs.map((x, i) => pendingOf(op, x, w, dys[i]!));
    const expected = differences(op, xs[0]!, w, dys[0]!);
    const some = (t: tf.Tensor) => [0, 1, t.size >> 1, t.size - 1].map((i) => t.dataSync()[i]!);
    near(some(parts[0]!.dx), expected.x, 2e-4, `${name}, input`);
    near(some(parts[0]!.weight()), expected.w, 2e-4, `${name}, weight`);
    for (const { pending } of parts) {
      assert.equal(pending.length, 1);
      assert.equal(pending[0]!.overBatch !== undefined, joined, name);
    }
    if (joined) {
      const sum = tf.addN(parts.map((part) => part.weight()));
      const join = (k: 0 | 1) => tf.concat(parts.map(({ pending }) => pending[0]!.overBatch!.inputs[k]), 0);
      const all = parts[0]!.weight(({ overBatch }) => overBatch!.run(join(0), join(1)));
      near(all.dataSync(), sum.dataSync(), 1e-5, `${name}, three micro-batches at once`);
    }
    return parts.map(({ recording }) => recording) as never;
  }) as unknown as { dispose(): void; outputs: tf.Tensor[] }[];
  for (const recording of opened) {
    recording.dispose();
    tf.dispose([...recording.outputs]);
  }
  assert.equal(tf.memory().numTensors, before);
  tf.dispose([w, xs]);
}

for (const each of JOINED) {
  Deno.test(`several micro-batches share one call for the weight: ${each.name}`, () => check(each, true));
}

for (const each of APART) {
  Deno.test(`each micro-batch has its own call for the weight: ${each.name}`, () => check(each, false));
}

Deno.test("relu's gradient is read off its output", () => {
  registerLayers();
  tf.tidy(() => {
    const x = tf.tensor1d([-2, -0, 0, 1e-30, 3]);
    const recording = record(() => [tf.relu(x)]);
    const node = recording.nodes.find(({ kernelName }) => kernelName === "Relu");
    assert.equal(node!.saved!.length, 1);
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], []);
    const { inputGradients } = backward(recording, [tf.tensor1d([5, 6, 7, 8, 9])], [x], dependent);
    assert.deepEqual([...inputGradients[0]!.dataSync()], [0, 0, 0, 8, 9]);
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});
