/** Tests of recording a forward: what it keeps, and what an error leaves. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { backward, dependence, record, type Recording } from "../../stages/tape.ts";
import { engine, silenceBanner } from "../../stages/tfjs.ts";

await tf.setBackend("cpu");
silenceBanner();

Deno.test("an error in the forward leaves no tensor and the engine as it was", () => {
  const x = tf.tensor1d([1, 2, 3]);
  const { state } = engine();
  const before = tf.memory().numTensors;
  const { activeTape, activeScope, gradientDepth, kernelDepth } = state;
  const fail = () => {
    const y = tf.tidy(() => tf.sin(tf.mul(x, x)));
    tf.matMul(y as tf.Tensor2D, x as unknown as tf.Tensor2D); // of other shapes
    return [y];
  };
  for (let i = 0; i < 3; i++) assert.throws(() => record(fail));
  assert.equal(tf.memory().numTensors, before);
  assert.deepEqual([state.activeTape, state.gradientDepth, state.kernelDepth], [
    activeTape,
    gradientDepth,
    kernelDepth,
  ]);
  assert.equal(state.activeScope ?? null, activeScope ?? null);
  const dx = tf.grad((t) => tf.square(t))(x);
  assert.deepEqual([...dx.dataSync()], [2, 4, 6]);
  tf.dispose([x, dx]);
});

Deno.test("record() within a tidy keeps its outputs and what its backward reads", () => {
  const x = tf.tensor1d([1, 2]);
  const before = tf.memory().numTensors;
  let recording!: Recording;
  tf.tidy(() => void (recording = record(() => [tf.square(tf.sin(x))])));
  assert.ok(!recording.outputs[0]!.isDisposed);
  assert.ok(!engine().state.activeTape);
  const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], []);
  tf.tidy(() => {
    const [dx] = backward(recording, [tf.ones([2])], [x], dependent).inputGradients;
    [...dx!.dataSync()].forEach((d, i) => assert.ok(Math.abs(d - Math.sin(2 * (i + 1))) < 1e-6));
  });
  recording.dispose();
  recording.dispose(); // again, without harm
  tf.dispose([...recording.outputs]);
  assert.equal(tf.memory().numTensors, before);
  x.dispose();
});
