/** What tests of the models that Stagger builds share. @module */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { setWasmPaths } from "npm:@tensorflow/tfjs-backend-wasm@4.22.0";
import { tf } from "../../deps.ts";
import type { Layer } from "../../stages/tfjs.ts";

setWasmPaths(fileURLToPath(new URL(".", import.meta.resolve("npm:@tensorflow/tfjs-backend-wasm@4.22.0"))));

/** Runs something on tfjs-backend-wasm as it is published: TensorFlow.js's cpu backend takes minutes. */
export async function onWasm(run: () => void | Promise<void>): Promise<void> {
  assert.ok(await tf.setBackend("wasm"));
  try {
    await run();
  } finally {
    await tf.setBackend("cpu");
  }
}

/** Numbers in `center` +- `spread` from a hash of tensor and index: `uniform` of resnet50_torch.py. */
export function uniform(tensor: number, shape: number[], center: number, spread: number): tf.Tensor {
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
  const offset = Math.imul(tensor, 0x9e3779b9);
  for (let i = 0; i < values.length; i++) {
    let x = (i + offset) | 0;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    values[i] = center + spread * (((x ^ (x >>> 16)) >>> 0) / 2 ** 31 - 1);
  }
  return tf.tensor(values, shape);
}

/** Sets the weights that `fill` of resnet50_torch.py sets. @param names layers in PyTorch's order */
export function fillLayers(model: tf.LayersModel, names: readonly string[]): void {
  let tensor = 0;
  for (const name of names) {
    const layer = model.getLayer(name);
    const { weights } = layer as unknown as Layer;
    const values = weights.map(({ shape }, i) => {
      const [center, spread] = range(layer.getClassName(), i, weights[0]!.shape);
      return uniform(++tensor, shape, center, spread);
    });
    layer.setWeights(values);
    tf.dispose(values);
  }
}

/** Where the numbers of a layer's weight `i` lie. */
function range(className: string, i: number, kernel: readonly number[]): [center: number, spread: number] {
  if (className === "BatchNormalization") {
    return ([[1, 0.25], [0, 0.25], [0, 0.25], [1, 0.5]] as const)[i]! as [number, number];
  }
  const fanIn = kernel.slice(0, -1).reduce((a, b) => a * b, 1);
  if (className === "Dense") return [0, fanIn ** -0.5];
  return [0, i === 0 ? Math.sqrt(6 / fanIn) : 1];
}

/** How many numbers weights have. */
export function count(weights: readonly tf.LayerVariable[]): number {
  return weights.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a! * b!, 1)!, 0);
}

/** A model as it is saved. */
export function saved(model: tf.LayersModel): Promise<tf.io.ModelArtifacts> {
  return new Promise((resolve) => {
    model.save(tf.io.withSaveHandler((artifacts) => {
      resolve(artifacts);
      return Promise.resolve({ modelArtifactsInfo: { dateSaved: new Date(), modelTopologyType: "JSON" } });
    }));
  });
}

/** Every `class_name` in a saved topology. */
export function classNames(value: unknown, found: Set<string> = new Set()): Set<string> {
  if (typeof value !== "object" || value === null) return found;
  for (const [key, inner] of Object.entries(value)) {
    if (key === "class_name") found.add(inner);
    classNames(inner, found);
  }
  return found;
}
