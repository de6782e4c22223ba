/** Models, data and comparisons for tests of stages. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { internals } from "../../stages/tfjs.ts";
import { type LayerCase, modelOf } from "../layer_cases.ts";
import { close } from "./compare.ts";
import { type Host, host, prepare, type Prepared, Stages } from "./stages.ts";

const L = tf.layers;

/** By layer and index. */
export type Weights = Record<string, Float32Array | Int32Array>;

/** Makes the stages of a model. */
export type Make = (
  kind?: "captured" | "eager",
  optimizer?: ConstructorParameters<typeof Stages>[2],
  seed?: number,
) => Stages;

/** Lets `use` make stages of a model, and frees all. */
export async function withStages<T>(
  model: tf.LayersModel,
  options: Parameters<typeof prepare>[1],
  use: (make: Make, prepared: Prepared) => T | Promise<T>,
): Promise<T> {
  const prepared = await prepare(model, options);
  const made: Stages[] = [];
  const make: Make = (kind = "captured", optimizer, seed) => {
    const stages = new Stages(prepared, kind, optimizer, seed);
    made.push(stages);
    return stages;
  };
  try {
    return await use(make, prepared);
  } finally {
    for (const stages of made) stages.dispose();
    model.dispose();
  }
}

/** Gives `use` the stage of a layer's model and four samples. */
export async function withLayer(
  layer: LayerCase,
  use: (prepared: Prepared, x: Host, y: Host) => void | Promise<void>,
): Promise<void> {
  const model = modelOf(layer);
  const prepared = await prepare(model);
  const x = host([4, ...layer.shape], 3, layer.dtype);
  if (layer.first) x.values.fill(0, 4, 8); // a step that is masked
  else if (x.dtype === "float32") x.values.forEach((v, i) => x.values[i] = v - 1.5); // below 0: PReLU's weights count
  try {
    await use(prepared, x, host([4, ...model.outputs[0]!.shape.slice(1) as number[]], 4));
  } finally {
    model.dispose();
  }
}

/** As `close`, for each weight. */
export function closeWeights(actual: Weights, expected: Weights, tolerance: number, what = ""): void {
  assert.deepEqual(Object.keys(actual), Object.keys(expected));
  for (const [name, values] of Object.entries(expected)) {
    close(actual[name]!, values, tolerance, `${what} ${name}`);
  }
}

/** Convolutions of both kinds of W, a residual, BatchNorm, whose gradients fall out of B, and biases. */
export function residual(norm = true): tf.LayersModel {
  const input = tf.input({ shape: [4, 4, 3] });
  const apply = (layer: tf.layers.Layer, x: tf.SymbolicTensor | tf.SymbolicTensor[]) =>
    layer.apply(x) as tf.SymbolicTensor;
  const first = apply(L.conv2d({ filters: 4, kernelSize: 3, padding: "same" }), input);
  let y = norm ? apply(L.batchNormalization({}), first) : first;
  y = apply(L.activation({ activation: "relu" }), y);
  y = apply(L.conv2d({ filters: 4, kernelSize: 1, useBias: false }), y);
  y = apply(L.add(), [first, y]);
  y = apply(L.globalAveragePooling2d({}), y);
  y = apply(L.dropout({ rate: 0.2, name: "drop" }), y);
  const last = L.dense({ units: 3, kernelRegularizer: "l1l2" });
  return tf.model({ inputs: input, outputs: apply(last, y) });
}

/** A batch for it, or for another model. */
export function data(samples: number, seed = 3, shape = [4, 4, 3], out = [3]): [Host[], Host[]] {
  return [[host([samples, ...shape], seed)], [host([samples, ...out], seed + 50)]];
}

/** Weights of a model after plain tfjs has trained one batch. */
export async function trainPlainly(
  model: tf.LayersModel,
  [[x], [y]]: ReturnType<typeof data>,
  optimizer: tf.Optimizer = tf.train.sgd(1),
): Promise<{ loss: number; weights: Weights }> {
  model.compile({ optimizer, loss: "meanSquaredError" });
  const [xs, ys] = [x!, y!].map(({ values, shape, dtype }) => tf.tensor(values, [...shape], dtype));
  const loss = await model.trainOnBatch(xs!, ys!) as number;
  tf.dispose([xs!, ys!]);
  return { loss, weights: plainWeights(model) };
}

/** Weights of a model itself. */
export function plainWeights(model: tf.LayersModel): Weights {
  return Object.fromEntries(
    internals(model).layers.flatMap(({ name, weights }) =>
      weights.map((w, i) => [`${name}#${i}`, w.read().dataSync().slice() as Float32Array])
    ),
  );
}
