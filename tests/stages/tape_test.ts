/** Tests of the split tape against TensorFlow.js's own gradients. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { backward, dependence, record, weightGradients } from "../../stages/tape.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { GRAPHS, type TapeGraph } from "./tape_graphs.ts";
import { close, recorded, tensorsOf } from "./taped.ts";

await tf.setBackend("cpu");
silenceBanner();

/** The same from tfjs. */
function reference(
  graph: TapeGraph,
  { x, w }: ReturnType<typeof tensorsOf>,
  dy: tf.Tensor[],
  inputs: tf.Tensor[],
) {
  return tf.tidy(() => {
    const f = (...args: tf.Tensor[]) => {
      const xs = x.map((t) => inputs.includes(t) ? args[inputs.indexOf(t)]! : t);
      const made = graph.forward(xs, args.slice(inputs.length));
      return made.map((y, i) => tf.sum(tf.mul(y, dy[i]!))).reduce((a, b) => tf.add(a, b)) as tf.Scalar;
    };
    return tf.grads(f)([...inputs, ...w]).map((t) => [...t.dataSync()]);
  });
}

for (const graph of GRAPHS) {
  Deno.test(`B and W together give tfjs's gradients, and leave no tensor: ${graph.name}`, () => {
    const tensors = tensorsOf(graph, 1);
    const before = tf.memory().numTensors;
    const { run, inputs, dy, dispose } = recorded(graph, tensors, 1);
    const gradients = run();
    close(gradients, reference(graph, tensors, dy, inputs));
    dispose();
    assert.equal(tf.memory().numTensors, before);
    tf.dispose([tensors.x, tensors.w]);
  });
}

Deno.test("recordings stay alive side by side and run backward in any order", () => {
  const graphs = GRAPHS.filter(({ name }) => /chain|residual|transformed|split|images?/.test(name));
  assert.ok(graphs.length > 3);
  const before = tf.memory().numTensors;
  const open = [0, 1, 2].flatMap((seed) =>
    graphs.map((graph) => {
      const tensors = tensorsOf(graph, seed * 1000);
      return { graph, tensors, ...recorded(graph, tensors, seed * 1000) };
    })
  );
  const order = open.map((_, i) => (i * 7 + 3) % open.length);
  assert.equal(new Set(order).size, open.length);
  for (const i of order) {
    const { graph, tensors, run, dispose, dy, inputs } = open[i]!;
    close(run(), reference(graph, tensors, dy, inputs), graph.name);
    dispose();
    tf.dispose([tensors.x, tensors.w]);
  }
  assert.equal(tf.memory().numTensors, before);
});

Deno.test("an output without a gradient counts as zero, and a weight that nothing reaches has none", () => {
  tf.tidy(() => {
    const [x, w, unused] = [tf.tensor1d([1, 2]), tf.tensor1d([3, 4]), tf.tensor1d([5, 6])];
    const recording = record(() => [tf.mul(x, w), tf.mul(x, 7)]);
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], [w.id, unused.id]);
    const { inputGradients, pending } = backward(recording, [undefined, tf.ones([2])], [x], dependent);
    assert.deepEqual([...inputGradients[0]!.dataSync()], [7, 7]);
    assert.equal(weightGradients(recording, pending, dependent).size, 0);
    const none = backward(recording, [undefined, undefined], [x], dependent);
    assert.deepEqual(none, { inputGradients: [undefined], pending: [] });
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});

Deno.test("no gradient flows through comparisons and indices, and none is asked of their ops", () => {
  tf.tidy(() => {
    const [x, w] = [tf.tensor1d([1, -2, 3]), tf.tensor1d([10, 20, 30])];
    const recording = record(() => {
      const kept = tf.where(tf.greater(x, 0), tf.mul(x, w), w);
      const mask = tf.cast(tf.less(tf.mul(x, w), 50), "float32");
      return [tf.add(tf.mul(kept, mask), tf.gather(w, tf.cast(tf.relu(tf.sub(x, 1)), "int32")))];
    });
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], [w.id]);
    const { inputGradients, pending } = backward(recording, [tf.ones([3])], [x], dependent);
    assert.deepEqual([...inputGradients[0]!.dataSync()], [10, 0, 0]);
    const dw = weightGradients(recording, pending, dependent).get(w.id)!;
    assert.deepEqual([...dw.dataSync()], [1 + 2, 1, 1]); // rows 0, 0 and 2 are picked
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});

Deno.test("an op without gradient is named, where a gradient must pass through it", () => {
  tf.tidy(() => {
    const x = tf.tensor1d([3, 1, 2]);
    const recording = record(() => [tf.topk(x, 2).values]);
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], []);
    assert.throws(() => backward(recording, [tf.ones([2])], [x], dependent), {
      message: 'Cannot train through op "TopK": TensorFlow.js has no gradient for it',
    });
    const unwanted = dependence(recording.nodes, [{ tensor: x, wanted: false }], []);
    assert.deepEqual(backward(recording, [tf.ones([2])], [], unwanted).pending, []);
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});

Deno.test("a gradient written by hand may give one tensor for several inputs", () => {
  tf.tidy(() => {
    // deno-lint-ignore no-explicit-any
    const sum: any = tf.customGrad(
      ((a: tf.Tensor, b: tf.Tensor) => ({
        value: tf.add(a, b),
        gradFunc: (dy: tf.Tensor) => {
          const dx = tf.mul(dy, 3);
          return [dx, dx];
        },
        // deno-lint-ignore no-explicit-any
      })) as any,
    );
    const [x, w] = [tf.tensor1d([1, -2]), tf.tensor1d([5, 7])];
    const recording = record(() => {
      const [y, z] = [tf.mul(x, 2), tf.mul(x, 4)];
      return [tf.add(tf.add(tf.mul(y, z), sum(y, z)), tf.add(sum(y, w), sum(w, w)))];
    });
    const dependent = dependence(recording.nodes, [{ tensor: x, wanted: true }], [w.id]);
    const { inputGradients, pending } = backward(recording, [tf.ones([2])], [x], dependent);
    // 2 (4 x + 3 + 3) + 4 (2 x + 3), and three times w
    assert.deepEqual([...inputGradients[0]!.dataSync()], [40, -8]);
    assert.deepEqual([...weightGradients(recording, pending, dependent).get(w.id)!.dataSync()], [9, 9]);
    recording.dispose();
    tf.dispose([...recording.outputs]);
  });
});
