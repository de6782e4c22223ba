/** Tests of every layer of tfjs-layers: both engines train it alike, and as TensorFlow.js does where it can. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { onStock } from "./stock.ts";
import { LAYERS, modelOf } from "../layer_cases.ts";
import { close } from "../tensorflow/compare.ts";
import { test } from "../tensorflow/engine.ts";
import { trainPlainly, type Weights, withLayer } from "../tensorflow/stage_fixtures.ts";
import { type Host, type Prepared, type StageKind, Stages } from "../tensorflow/stages.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { testOn } from "./engines.ts";

const wasm = await startBackend();
registerLayers();

/** Classes of layers without a case, each with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  Functional: "holds layers",
  Sequential: "holds layers",
  CategoryEncoding: "encodes what is given: TensorFlow.js has no gradient of counting",
  CenterCrop: "crops what is given: TensorFlow.js has no gradient of cropping and resizing",
  ConvLSTM2DCell: "computes within ConvLSTM2D, whose config does not name it",
  Resizing: "fails in every model: TensorFlow.js hands it a list, and its output shape has no batch",
  StaggerMoments: "a part of BatchNormalization in replicas: tests/trainer/data_parallel_test.ts",
  StaggerSyncBatchNormalization: "the other part",
  RandomWidth: "resizes what is given, by random numbers of its own",
};

Deno.test("every class of layers has a case, or a reason to have none", () => {
  // deno-lint-ignore no-explicit-any
  const { classNameMap } = (tf.serialization.SerializationMap as any).getMap();
  const classes = Object.keys(classNameMap).filter((name) =>
    classNameMap[name][0].prototype instanceof tf.layers.Layer
  );
  const used = new Set(LAYERS.flatMap((layer) => {
    const model = modelOf(layer);
    const config = JSON.stringify(model.toJSON(undefined, false));
    model.dispose();
    return [...config.matchAll(/"(?:class_name|className)":"(\w+)"/g)].map(([, name]) => name!);
  }));
  const known = (name: string) => used.has(name) || name in EXEMPT;
  assert.deepEqual(classes.filter((name) => !known(name)), []);
  assert.deepEqual(Object.keys(EXEMPT).filter((name) => used.has(name)), []);
});

interface Outcome {
  readonly predictions: ArrayLike<number>;
  readonly losses: number[];
  readonly weights: Weights;
}

const SGD = { name: "sgd", learningRate: 0.5 } as const;

/** Predicts, and trains steps on one batch. */
function train(prepared: Prepared, kind: StageKind, [x, y]: readonly [Host, Host], steps: number): Outcome {
  const stages = new Stages(prepared, kind, SGD);
  try {
    const predictions = stages.predict([x])[0]!.values as Float32Array;
    const losses = Array.from({ length: steps }, () => stages.step([x], [y])[0]!);
    return { predictions, losses, weights: stages.weights() };
  } finally {
    stages.dispose();
  }
}

/** As `train`, one step by TensorFlow.js itself; the model's weights change. */
async function trainStock({ model }: Prepared, [x, y]: readonly [Host, Host]): Promise<Outcome> {
  const predictions = tf.tidy(() => {
    const xs = tf.tensor(x.values, [...x.shape], x.dtype);
    return (model.predict(xs) as tf.Tensor).dataSync();
  });
  const optimizer = tf.train.sgd(SGD.learningRate);
  try {
    const { loss, weights } = await trainPlainly(model, [[x], [y]], optimizer);
    return { predictions, losses: [loss], weights };
  } finally {
    optimizer.dispose();
  }
}

/** What training changed counts, not what the weights were. */
function closeOutcomes(found: Outcome, expected: Outcome, prepared: Prepared, tolerance: number): void {
  close(found.predictions, expected.predictions, tolerance, "predictions");
  close(found.losses, expected.losses, tolerance, "losses");
  const { configs, memory } = prepared;
  for (const { layer, index, offset, dtype } of configs.flatMap(({ weights }) => weights)) {
    const [a, b] = [found, expected].map(({ weights }) => weights[`${layer}#${index}`]!);
    const before = new Float32Array(memory.shared, offset, b!.length);
    if (dtype !== "float32") continue;
    const change = (after: ArrayLike<number>) => Float32Array.from(after, (v, i) => v - before[i]!);
    const changes = change(b!);
    // Rounding of a weight is of the weight's size, however little it changed.
    const least = changes.reduce((most, v, i) => Math.max(most, Math.abs(v), 0.01 * Math.abs(b![i]!)), 0);
    close([...change(a!), least], [...changes, least], tolerance, `change of ${layer}#${index}`);
  }
}

const TRAINABLE = LAYERS.filter(({ untrainable }) => !untrainable);

for (const layer of TRAINABLE) {
  test(`both engines train it alike: ${layer.name}`, () =>
    withLayer(layer, async (prepared, x, y) => {
      await tf.setBackend("wasm");
      const ours = train(prepared, wasm, [x, y], 2);
      await tf.setBackend("tensorflow");
      const tensorflow = train(prepared, "captured", [x, y], 2);
      closeOutcomes(ours, tensorflow, prepared, 1e-4);
    }));

  if (layer.random) continue; // it draws other numbers
  const { stock } = layer;
  const what = !stock
    ? "as TensorFlow.js does"
    : "fails" in stock
    ? "where TensorFlow.js fails"
    : `not as TensorFlow.js, ${stock.wrong}`;
  testOn("wasm", `a layer trains, ${what}: ${layer.name}`, () =>
    withLayer(layer, async (prepared, x, y) => {
      const ours = train(prepared, wasm, [x, y], 1);
      const theirs = () => onStock(() => trainStock(prepared, [x, y]));
      if (stock && "fails" in stock) {
        await assert.rejects(theirs(), stock.fails);
        return;
      }
      const expected = await theirs();
      const compare = () => closeOutcomes(ours, expected, prepared, 1e-4);
      if (stock) assert.throws(compare, "TensorFlow.js is right after all");
      else compare();
    }), { leaks: stock !== undefined && "fails" in stock });
}
