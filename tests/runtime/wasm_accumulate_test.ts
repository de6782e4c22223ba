/** Gradients of weights that the engine wasm adds up where they lie. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { runKernel, silenceBanner } from "../../stages/tfjs.ts";
import { weightsOf } from "../trainer/models.ts";
import { assertClose, tensor } from "./wasm_reference.ts";

silenceBanner();
const { kernels } = await startBackend();

const CONVOLUTION = {
  strides: [1, 1],
  pad: "same",
  dataFormat: "NHWC",
  dilations: [1, 1],
  filterShape: [3, 3, 5, 6],
};

Deno.test("a product is added to a sum of its size in place, and to no other", async () => {
  await tf.setBackend("wasm");
  const filterGradient = () =>
    runKernel(
      tf.Conv2DBackpropFilter,
      { x: tensor([2, 4, 5, 5]), dy: tensor([2, 4, 5, 6], 1) },
      CONVOLUTION,
    )[0]!;
  const products: [string, shape: number[], () => tf.Tensor][] = [
    ["filter's gradient", CONVOLUTION.filterShape, filterGradient],
    // Deeper than a block: parts of a sum follow one another.
    [
      "product",
      [7, 9],
      () => tf.matMul(tensor([700, 7]) as tf.Tensor2D, tensor([700, 9], 1) as tf.Tensor2D, true),
    ],
  ];
  tf.tidy(() => {
    for (const [name, shape, make] of products) {
      const [start, plain] = [tensor(shape, 2), make()];
      const sum = tensor(shape, 2);
      const { made, added } = kernels!.adding(sum, make);
      assert.ok(added, name);
      assertClose(made.dataSync(), tf.add(start, plain).dataSync(), 1e-6, name);
      assert.deepEqual(made.shape, shape);
      assert.equal(made.dataId, sum.dataId, `${name}: a copy was made`);
      assert.deepEqual(make().dataSync(), plain.dataSync(), `${name}: the next one is added too`);
      const other = kernels!.adding(tensor([3]), make);
      assert.equal(other.added, false);
      assert.deepEqual(other.made.dataSync(), plain.dataSync());
      assert.throws(() => kernels!.adding(sum, () => assert.fail("broken")), /broken/);
      assert.deepEqual(make().dataSync(), plain.dataSync(), `${name}: a sum outlives a failure`);
    }
  });
  await tf.setBackend("cpu");
});

/** Convolutions and products, each with a bias; the second product three times, and one at every step in time. */
function net(): tf.LayersModel {
  const { layers } = tf;
  const kernelInitializer = (seed: number) => tf.initializers.glorotUniform({ seed });
  const input = tf.input({ shape: [6, 6, 3] });
  const images = layers.conv2d({ filters: 4, kernelSize: 3, kernelInitializer: kernelInitializer(1) }).apply(
    input,
  );
  const first = layers.dense({ units: 5, kernelInitializer: kernelInitializer(2), activation: "tanh" })
    .apply(layers.flatten().apply(images));
  const often = layers.dense({ units: 5, kernelInitializer: kernelInitializer(3), activation: "tanh" });
  const again = often.apply(often.apply(often.apply(first)));
  const steps = layers.reshape({ targetShape: [5, 1] }).apply(again);
  const each = layers.dense({ units: 1, kernelInitializer: "ones" });
  const outputs = layers.flatten().apply(layers.timeDistributed({ layer: each }).apply(steps));
  return tf.model({ inputs: input, outputs: outputs as tf.SymbolicTensor });
}

/** Weights after two steps. */
async function train(microBatches: number): Promise<Float32Array[]> {
  const model = net();
  const trainer = await distribute(model, {
    engine: "wasm",
    devices: ["cpu:0"],
    strategy: "single",
    microBatches,
  });
  try {
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    for (let step = 0; step < 2; step++) {
      await trainer.trainOnBatch(tensor([12, 6, 6, 3]), tensor([12, 5], 1));
    }
  } finally {
    await trainer.dispose();
  }
  return weightsOf(model);
}

Deno.test("gradients of micro-batches add up to the batch's, of a layer that is used several times too", async () => {
  const whole = await train(1);
  for (const microBatches of [2, 3, 5]) {
    (await train(microBatches)).forEach((weight, i) =>
      assertClose(weight, whole[i]!, 1e-5, `weight ${i}, ${microBatches} micro-batches`)
    );
  }
});
