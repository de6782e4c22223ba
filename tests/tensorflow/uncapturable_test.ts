/** Tests of what a capture refuses, naming the layer and the reason, and of what it takes nevertheless. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { CaptureError } from "../../runtime/tensorflow/binding/graph_tensor.ts";
import { functionCounters } from "../../runtime/tensorflow/capture/captured_function.ts";
import type { LayerVariable } from "../../stages/tfjs.ts";
import { engine, numbers, test } from "./engine.ts";
import { type Host, host, prepare, sequential, Stages } from "./stages.ts";

const L = tf.layers;

/** A layer with one weight whose `call` is any function of it. */
interface Probe {
  readonly name: string;
  readonly weight: LayerVariable;
}

type Body = (x: tf.Tensor, layer: Probe) => tf.Tensor;

/** Makes the class of a layer that computes `body`, known to tfjs-layers under `className`. */
function layerOf(className: string, body: Body): () => tf.layers.Layer {
  const Custom = class extends tf.layers.Layer {
    static className = className;
    weight!: LayerVariable;

    override build(shape: tf.Shape): void {
      const initializer = tf.initializers.ones();
      const add = this.addWeight.bind(this) as unknown as (...args: unknown[]) => LayerVariable;
      this.weight = add("weight", [shape.at(-1)], "float32", initializer);
      super.build(shape);
    }

    override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
      return tf.tidy(() => body(Array.isArray(inputs) ? inputs[0]! : inputs, this as unknown as Probe));
    }

    override computeOutputShape(shape: tf.Shape): tf.Shape {
      return shape;
    }
  };
  tf.serialization.registerClass(Custom as never);
  return () => new Custom({ name: className.toLowerCase() } as never);
}

const kept = { step: 0, tensors: [] as tf.Tensor[] };

/** What a layer may do that a captured function could not repeat, and the words for it. */
const REFUSED: [what: string, layers: () => tf.layers.Layer[], shape: number[], reason: string][] = [
  [
    "Math.random",
    () => [layerOf("Dice", (x) => tf.mul(x, Math.random()))()],
    [4],
    "draws random numbers while it computes",
  ],
  [
    "a random tensor of tfjs",
    () => [layerOf("Noise", (x) => tf.add(x, tf.randomNormal([4])))()],
    [4],
    "draws random numbers while it computes",
  ],
  [
    "the values of an activation",
    () => [layerOf("Peek", (x) => tf.mul(x, tf.sum(x).dataSync()[0]!))()],
    [4],
    "reads values while it computes",
  ],
  [
    "the values of a weight",
    () => [layerOf("PeekWeight", (x, { weight }) => tf.mul(x, weight.read().dataSync()[0]!))()],
    [4],
    "reads values while it computes",
  ],
  [
    "a weight that it writes",
    () => [
      layerOf("Mover", (x, { weight }) => {
        weight.write(tf.mul(weight.read(), 0.5));
        return tf.mul(x, weight.read());
      })(),
    ],
    [4],
    "assigns a variable while it computes",
  ],
  [
    "a large tensor of its own",
    () => [layerOf("Table", (x) => tf.add(x, tf.tensor(numbers(1200), [1200])))()],
    [1200],
    "uses a tensor of shape [1200] that was not made by an op",
  ],
  [
    "a shape that depends on values",
    () => [layerOf("Distinct", (x) => tf.mul(x, tf.sum(tf.unique(tf.reshape(x, [-1])).values)))()],
    [4],
    "makes a tensor whose shape depends on values",
  ],
  ["SimpleRNN's dropout", () => [L.simpleRNN({ units: 2, dropout: 0.5 })], [2, 3], "draws random numbers"],
  ["LSTM's dropout", () => [L.lstm({ units: 2, dropout: 0.5 })], [2, 3], "draws random numbers"],
  ["LSTM's recurrent dropout", () => [L.lstm({ units: 2, recurrentDropout: 0.5 })], [2, 3], "draws random"],
  ["GRU's recurrent dropout", () => [L.gru({ units: 2, recurrentDropout: 0.5 })], [2, 3], "draws random"],
  [
    "ConvLSTM2D's dropout",
    () => [L.convLstm2d({ filters: 1, kernelSize: 2, dropout: 0.3 }) as tf.layers.Layer],
    [2, 3, 3, 1],
    "draws random numbers",
  ],
];

function batch(model: tf.LayersModel, shape: number[], size = 4): [Host[], Host[]] {
  const out = model.outputs[0]!.shape.slice(1) as number[];
  return [[host([size, ...shape], 3)], [host([size, ...out], 4)]];
}

function counts(): number[] {
  return [tf.memory().numTensors, engine.binding.getNumOfTensors(), functionCounters.alive];
}

for (const [what, layers, shape, reason] of REFUSED) {
  test(`a capture refuses ${what}, naming the layer, and leaves nothing behind`, async () => {
    const [probe] = layers();
    const rank2 = shape.length === 1;
    // BatchNorm before it has left statistics when the layer throws; layers after it must not be blamed.
    const norms = rank2 ? [L.batchNormalization({})] : [];
    const after = rank2 ? [L.dense({ units: 2, name: "after" })] : [];
    const first = L.activation({ activation: "linear", inputShape: shape });
    const model = sequential(first, ...norms, probe!, ...after);
    const prepared = await prepare(model);
    const [x, y] = batch(model, shape);
    const before = counts();
    const stages = new Stages(prepared, "captured");
    const started = counts();
    for (const split of [false, true]) {
      assert.throws(() => stages.step(x, y, { split }), (error) => {
        assert.ok(error instanceof CaptureError, `${error}`);
        assert.ok(error.message.includes(reason), error.message);
        return true;
      });
      assert.equal(stages.models[0]!.currentLayer, probe!.name);
      stages.reset();
      assert.deepEqual(counts(), started, "left over");
      assert.equal(engine.binding.recorder, undefined);
    }
    assert.notEqual(Math.random(), Math.random());
    const untouched = stages.weights();
    stages.dispose();
    assert.deepEqual(counts(), before, "left over after dispose");
    const eager = new Stages(prepared, "eager"); // the way out
    assert.deepEqual(eager.weights(), untouched);
    if (what !== "a shape that depends on values") { // nor has tfjs a gradient for it
      eager.step(x, y);
      const first = counts(); // a recurrent layer keeps the masks of its last call
      eager.step(x, y);
      assert.deepEqual(counts(), first, "left over after an eager step");
    }
    eager.dispose();
    model.dispose();
  });
}

/** What a layer may do that looks alike and is captured. */
const TAKEN: [what: string, layers: () => tf.layers.Layer[], shape: number[]][] = [
  ["a small tensor of its own", () => [layerOf("Small", (x) => tf.add(x, tf.tensor1d([1, 2, 3, 4])))()], [4]],
  ["a large tensor of one value", () => [layerOf("Ones", (x) => tf.add(x, tf.ones([1200])))()], [1200]],
  ["a large tensor made by ops", () => [layerOf("Range", (x) => tf.mul(x, tf.range(0, 1200)))()], [1200]],
  [
    "a tensor made when the layer was built",
    () => {
      kept.tensors = [tf.tensor1d([3, 2, 1, 0])];
      return [layerOf("Kept", (x) => tf.mul(x, kept.tensors[0]!))()];
    },
    [4],
  ],
  [
    "values of a tensor that it made itself",
    () => [layerOf("Own", (x) => tf.mul(x, tf.tensor1d([5, 6]).dataSync()[1]!))()],
    [4],
  ],
];

for (const [what, layers, shape] of TAKEN) {
  test(`a capture takes ${what}`, async () => {
    const model = sequential(L.dense({ units: shape[0]!, inputShape: [3] }), ...layers());
    const prepared = await prepare(model);
    const [x, y] = batch(model, [3]);
    const outcomes = (["captured", "eager"] as const).map((kind) => {
      const stages = new Stages(prepared, kind);
      const losses = [stages.step(x, y), stages.step(x, y, { split: true, scalars: { learningRate: 0.1 } })];
      const weights = stages.weights();
      stages.dispose();
      return { losses, weights };
    });
    assert.deepEqual(outcomes[0], outcomes[1]);
    model.dispose();
    tf.dispose(kept.tensors.splice(0));
  });
}

test("a capture takes states and masks of an LSTM that are too large for constants", async () => {
  const model = sequential(
    L.embedding({ inputDim: 8, outputDim: 4, maskZero: true, inputLength: 8 }),
    L.lstm({ units: 8 }),
  );
  const prepared = await prepare(model);
  const [x, y] = [[host([140, 8], 3, "int32")], [host([140, 8], 4)]];
  const [captured, eager] = (["captured", "eager"] as const).map((kind) => {
    const stages = new Stages(prepared, kind);
    const loss = stages.step(x, y);
    const weights = stages.weights();
    stages.dispose();
    return { loss, weights };
  });
  assert.deepEqual(captured, eager);
  model.dispose();
});

test("a random number that is drawn between captures is nobody's business", async () => {
  const prepared = await prepare(sequential(L.dense({ units: 2, inputShape: [3] })));
  const stages = new Stages(prepared, "captured");
  Math.random();
  stages.step([host([4, 3])], [host([4, 2])]);
  stages.dispose();
  prepared.model.dispose();
});
