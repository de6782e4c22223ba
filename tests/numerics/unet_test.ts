/**
 * Tests of the U-Net on both engines: its up-sampling, its skips, and the losses and metrics of segmentation, in
 * a batch of three. Its deepest layers normalize 12 values for a channel: of fewer, rounding makes others.
 * @module
 */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { bceDiceLoss, dice, iou } from "../../stages/segmentation.ts";
import { weightKey } from "../../stages/stage_config.ts";
import { unet } from "../../stages/unet.ts";
import { close } from "../tensorflow/compare.ts";
import { test } from "../tensorflow/engine.ts";
import { type Host, host, prepare, type StageKind, Stages } from "../tensorflow/stages.ts";

const wasm = await startBackend();
registerLayers();

const [BATCH, SIZE] = [3, 64];
/** By which a step's loss falls in proportion. */
const LEARNING_RATE = 1e-5;
/** Of losses, relative. */
const TOLERANCE = 1e-5;

/** A disk in each mask, another one in each. */
function masks(): Host {
  const values = new Float32Array(BATCH * SIZE * SIZE);
  for (let i = 0; i < values.length; i++) {
    const [x, y] = [i % SIZE, Math.floor(i / SIZE) % SIZE];
    const image = Math.floor(i / SIZE ** 2);
    values[i] = Math.hypot(x - 20 - 9 * image, y - 40 + 9 * image) < 9 + 3 * image ? 1 : 0;
  }
  return { shape: [BATCH, SIZE, SIZE, 1], dtype: "float32", values };
}

test("the loss of a U-Net falls by its gradients' squares, and all is the same on both engines", async () => {
  const model = unet({ inputShape: [SIZE, SIZE, 3], seed: 1 });
  const prepared = await prepare(model, { loss: bceDiceLoss, metrics: [iou, dice], drawn: true });
  const trained = prepared.configs.flatMap(({ weights }) => weights).filter(({ trainable }) => trainable);
  const [x, y] = [host([BATCH, SIZE, SIZE, 3]), masks()];
  const run = (kind: StageKind) => {
    const slow = new Stages(prepared, kind, { name: "sgd", learningRate: LEARNING_RATE });
    const results = [slow.step([x], [y]), slow.step([x], [y])];
    slow.dispose();
    const unit = new Stages(prepared, kind, { name: "sgd", learningRate: 1 });
    unit.step([x], [y]);
    const after = unit.weights();
    unit.dispose();
    const gradients = trained.map(({ layer, index, offset }) => {
      const weights = after[weightKey(layer, index)]!;
      const before = new Float32Array(prepared.memory.shared, offset, weights.length);
      return before.map((value, i) => value - weights[i]!);
    });
    return { results, gradients };
  };
  await tf.setBackend("wasm");
  const ours = run(wasm);
  await tf.setBackend("tensorflow");
  const theirs = run("captured");
  model.dispose();

  for (const { results, gradients } of [ours, theirs]) {
    const squares = gradients.reduce((sum, gradient) => sum + length(gradient) ** 2, 0);
    const [fall, expected] = [results[0]![0]! - results[1]![0]!, LEARNING_RATE * squares];
    assert.ok(Math.abs(fall / expected - 1) < 0.03, `the loss fell by ${fall}, not ${expected}`);
  }
  ours.results.forEach(([loss, ...metrics], step) => {
    const [expected, ...expectedMetrics] = theirs.results[step]!;
    assert.ok(Math.abs(loss! / expected! - 1) <= TOLERANCE, `loss ${loss} of step ${step}, not ${expected}`);
    close(metrics, expectedMetrics, 1e-3, `metrics of step ${step}`); // some pixels lie at the threshold
    assert.ok(metrics.every((value) => value > 0 && value < 1));
  });
  assert.equal(trained.length, 140);
  trained.forEach(({ layer, index }, i) => {
    const [a, b] = [ours.gradients[i]!, theirs.gradients[i]!];
    const off = length(a.map((value, k) => value - b[k]!)) / length(b);
    assert.ok(off <= 0.01, `gradient ${index} of ${layer} is off by ${off}`);
  });
});

function length(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
