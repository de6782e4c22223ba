/** Tests of gradients where a slope is not defined: which of equal values gets it, and what a bend gives. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { ENGINES, testOn } from "./engines.ts";

await startBackend();
registerLayers();

type Op = (...x: tf.Tensor[]) => tf.Tensor;

const TIES: readonly [name: string, op: Op, inputs: number[][], gradients: number[][]][] = [
  ["maximum: the first gets it", (a, b) => tf.maximum(a!, b!), [[1, 2], [1, 3]], [[1, 0], [0, 1]]],
  ["minimum: the first gets it", (a, b) => tf.minimum(a!, b!), [[1, 2], [1, 3]], [[1, 1], [0, 0]]],
  // TensorFlow divides it among them; tfjs does not.
  ["max: each gets all", (x) => tf.max(x!), [[2, 1, 2]], [[1, 0, 1]]],
  ["min: each gets all", (x) => tf.min(x!), [[2, 1, 1]], [[0, 1, 1]]],
  [
    "maxPool: the first gets it",
    (x) => tf.maxPool(tf.reshape(x!, [1, 2, 2, 1]) as tf.Tensor4D, 2, 1, "valid"),
    [[0, 3, 3, 3]],
    [[0, 1, 0, 0]],
  ],
  ["relu at 0: none", (x) => tf.relu(x!), [[-1, 0, 1]], [[0, 0, 1]]],
  ["relu6 at its ends: all at 6, none at 0", (x) => tf.relu6(x!), [[0, 3, 6, 7]], [[0, 1, 1, 0]]],
  ["abs at 0: down", (x) => tf.abs(x!), [[-2, 0, 2]], [[-1, -1, 1]]],
  ["clipByValue at its ends: all", (x) => tf.clipByValue(x!, -1, 1), [[-2, -1, 0, 1, 2]], [[0, 1, 1, 1, 0]]],
  ["elu at 0: all", (x) => tf.elu(x!), [[0, 1]], [[1, 1]]],
];

for (const engine of ENGINES) {
  for (const [name, op, inputs, expected] of TIES) {
    testOn(engine, `the gradient of ${name}`, () => {
      const gradients = tf.grads((...x: tf.Tensor[]) => tf.sum(op(...x)))(inputs.map((x) => tf.tensor1d(x)));
      assert.deepEqual(gradients.map((gradient) => [...gradient.dataSync()].map((v) => v + 0)), expected);
    });
  }
}
