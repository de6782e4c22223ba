/** Tests of what runs in B and what in W, and of what each of them leaves in memory. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { backward, dependence, record, weightGradients } from "../../stages/tape.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { GRAPHS } from "./tape_graphs.ts";
import { close, kernels, recorded, tensorsOf } from "./taped.ts";

await tf.setBackend("cpu");
silenceBanner();

Deno.test("B runs no gradient of a weight, and W none of an activation", () => {
  const graph = GRAPHS[0]!; // two products, two biases
  const tensors = tensorsOf(graph, 3);
  for (const wanted of [true, false]) {
    const { recording, inputs, dependent, dy, dispose } = recorded(
      wanted ? graph : { ...graph, unwanted: [0] },
      tensors,
      3,
    );
    const products = (body: () => void) => kernels(body).filter((name) => name === "BatchMatMul").length;
    tf.tidy(() => {
      let pending: ReturnType<typeof backward>["pending"] = [];
      const inB = products(() => pending = backward(recording, dy, inputs, dependent).pending);
      assert.equal(inB, wanted ? 2 : 1);
      assert.deepEqual(pending.map(({ target }) => tensors.w.indexOf(target as never)).sort(), [0, 1, 2, 3]);
      const inW = kernels(() => weightGradients(recording, pending, dependent));
      assert.equal(inW.filter((name) => name === "BatchMatMul").length, 2);
      assert.ok(!inW.includes("Multiply"), "the gradient of tanh is B's");
    });
    dispose();
  }
  tf.dispose([tensors.x, tensors.w]);
});

Deno.test("ops on weights alone are W's", () => {
  const graph = GRAPHS.find(({ name }) => name.startsWith("weights reshaped"))!;
  const tensors = tensorsOf(graph, 6);
  const { recording, inputs, dependent, dy, dispose } = recorded(graph, tensors, 6);
  tf.tidy(() => {
    let pending: ReturnType<typeof backward>["pending"] = [];
    const inB = kernels(() => pending = backward(recording, dy, inputs, dependent).pending);
    assert.deepEqual(inB.filter((name) => name !== "Reshape"), ["BatchMatMul"]); // of the input's gradient
    assert.deepEqual(pending.map(({ target }) => target.shape), [[6, 2]]); // of the product's right side
    const inW = kernels(() => weightGradients(recording, pending, dependent));
    for (const name of ["Transpose", "Multiply", "RealDiv"]) assert.ok(inW.includes(name), inW.join());
  });
  dispose();
  tf.dispose([tensors.x, tensors.w]);
});

Deno.test("B runs nothing for inputs that nobody wants", () => {
  const graph = GRAPHS.find(({ name }) => name.startsWith("an input whose"))!;
  const tensors = tensorsOf(graph, 4);
  const { recording, inputs, dependent, dy, dispose } = recorded(graph, tensors, 4);
  const names = kernels(() => tf.tidy(() => void backward(recording, dy, inputs, dependent)));
  assert.ok(!names.includes("Sin") && !names.includes("Cos"), names.join());
  dispose();
  tf.dispose([tensors.x, tensors.w]);
});

Deno.test("gradients on the way are disposed as soon as they are used", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([1, 2]);
    const recording = record(() => {
      let y: tf.Tensor = x;
      for (let i = 0; i < 50; i++) y = tf.mul(y, 1.01);
      return [y];
    });
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], []);
    const dy = tf.ones([2]);
    const before = tf.memory().numTensors;
    backward(recording, [dy], [x], dependent);
    assert.equal(tf.memory().numTensors, before + 1);
    assert.deepEqual([...dy.dataSync()], [1, 1]); // the caller's own
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});

Deno.test("summands of an input's gradient are disposed once they are summed", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([1, 2]);
    const recording = record(() => [tf.addN(Array.from({ length: 20 }, (_, i) => tf.mul(x, i)))]);
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], []);
    const dy = tf.ones([2]);
    const before = tf.memory().numTensors;
    const [dx] = backward(recording, [dy], [x], dependent).inputGradients;
    assert.deepEqual([...dx!.dataSync()], [190, 190]);
    assert.ok(tf.memory().numTensors <= before + 2, `${tf.memory().numTensors - before} tensors are left`);
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});

Deno.test("backward() runs each op's part within around()", () => {
  const graph = GRAPHS[0]!;
  const tensors = tensorsOf(graph, 5);
  const { recording, inputs, dependent, dy, run, dispose } = recorded(graph, tensors, 5);
  const ops: string[] = [];
  const expected = run();
  const actual = tf.tidy(() => {
    const { inputGradients, pending } = backward(recording, dy, inputs, dependent, (node, body) => {
      ops.push(node.kernelName);
      return body();
    });
    const byId = weightGradients(recording, pending, dependent, (gradient) => tf.mul(gradient.run(), 2));
    return [inputGradients[0]!, ...tensors.w.map(({ id }) => tf.div(byId.get(id)!, 2))].map((
      t,
    ) => [...t.dataSync()]);
  });
  // tfjs records the copies that it saves, by the name of their scope; no gradient reaches them.
  assert.deepEqual(ops.filter((name) => !name.endsWith("__op")), [
    "Add",
    "BatchMatMul",
    "Tanh",
    "Add",
    "BatchMatMul",
  ]);
  close(actual, expected as number[][]);
  dispose();
  tf.dispose([tensors.x, tensors.w]);
});
