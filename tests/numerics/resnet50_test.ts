/**
 * Tests of ResNet50 on both engines. A fresh ResNet50 amplifies: an input that is off by one unit of rounding
 * ends up with other signs before some ReLU, and with gradients off by some percent, on one engine as between
 * two. So losses are compared at a learning rate at which such differences do not feed on each other.
 * @module
 */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { weightKey } from "../../stages/stage_config.ts";
import { resnet50 } from "../../stages/resnet50.ts";
import { test } from "../tensorflow/engine.ts";
import { type Host, prepare, type StageKind, Stages } from "../tensorflow/stages.ts";

const wasm = await startBackend();
registerLayers();

const [BATCH, SIZE, CLASSES] = [16, 32, 10];
const STEPS = 10;
const LEARNING_RATE = 2e-9;
/** Of losses, relative. */
const TOLERANCE = 1e-4;

/** Waves, of another direction, height and color in each image: noise would look the same to deep layers. */
function images(): Host {
  const values = new Float32Array(BATCH * SIZE * SIZE * 3);
  for (let i = 0; i < values.length; i++) {
    const channel = i % 3;
    const [column, row] = [Math.floor(i / 3) % SIZE, Math.floor(i / (3 * SIZE)) % SIZE];
    const image = Math.floor(i / (3 * SIZE * SIZE));
    const phase = 2 * Math.PI * ((1 + (7 * image) % 5) * row + (3 * image) % 4 * column) / SIZE;
    const wave = Math.sin(phase + 1.3 * image + channel) * (0.3 + 0.2 * (image % 5));
    values[i] = wave + 0.5 * Math.cos(2.1 * image + channel);
  }
  return { shape: [BATCH, SIZE, SIZE, 3], dtype: "float32", values };
}

function classes(): Host {
  const values = new Float32Array(BATCH * CLASSES);
  for (let i = 0; i < BATCH; i++) values[i * CLASSES + 3 * i % CLASSES] = 1;
  return { shape: [BATCH, CLASSES], dtype: "float32", values };
}

test("ten losses of ResNet50, and its first gradients, are the same on both engines", async () => {
  const model = resnet50({ inputShape: [SIZE, SIZE, 3], classes: CLASSES, seed: 1 });
  const prepared = await prepare(model, { loss: "categoricalCrossentropy", drawn: true });
  const [x, y] = [images(), classes()];
  const run = (kind: StageKind) => {
    const slow = new Stages(prepared, kind, { name: "sgd", learningRate: LEARNING_RATE });
    const losses = Array.from({ length: STEPS }, () => slow.step([x], [y])[0]!);
    slow.dispose();
    const fast = new Stages(prepared, kind, { name: "sgd", learningRate: 1 });
    fast.step([x], [y]);
    const weights = fast.weights();
    fast.dispose();
    return { losses, weights };
  };
  await tf.setBackend("wasm");
  const ours = run(wasm);
  await tf.setBackend("tensorflow");
  const theirs = run("captured");
  model.dispose();

  const [first, last] = [theirs.losses[0]!, theirs.losses.at(-1)!];
  assert.ok(first - last > 100 * TOLERANCE * first, `losses ${theirs.losses}: too little to compare`);
  ours.losses.forEach((loss, step) => {
    const off = Math.abs(loss - theirs.losses[step]!) / theirs.losses[step]!;
    assert.ok(off <= TOLERANCE, `loss ${loss} of step ${step} is off by ${off}`);
  });

  let compared = 0;
  for (const { layer, index, offset, trainable } of prepared.configs.flatMap(({ weights }) => weights)) {
    if (!trainable) continue;
    compared++;
    const key = weightKey(layer, index);
    const [a, b] = [ours.weights[key]!, theirs.weights[key]!];
    const before = new Float32Array(prepared.memory.shared, offset, b.length);
    const off = distance(a, b) / distance(b, before);
    // The last layer has no ReLU behind it.
    assert.ok(off <= (layer === "predictions" ? 1e-3 : 0.1), `gradient of ${key} is off by ${off}`);
  }
  assert.equal(compared, 161);
});

function distance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let squares = 0;
  for (let i = 0; i < a.length; i++) squares += (a[i]! - b[i]!) ** 2;
  return Math.sqrt(squares);
}
