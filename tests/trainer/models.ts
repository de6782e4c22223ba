/** Small models and data for tests, the same at every call. */
import { tf } from "../../deps.ts";

const seeded = (seed: number) => tf.initializers.glorotUniform({ seed });

/** A residual convolutional net without BatchNorm; `penalty` adds regularizers. */
export function residualNet({ norm = false, penalty = false, dropout = 0 } = {}): tf.LayersModel {
  const { layers } = tf;
  const l2 = penalty ? () => tf.regularizers.l2({ l2: 0.01 }) : () => undefined;
  const input = tf.input({ shape: [8, 8, 3], name: "image" });
  const conv = (name: string, filters: number, size: number, seed: number, x: tf.SymbolicTensor) => {
    let y = layers.conv2d({
      name,
      filters,
      kernelSize: size,
      padding: "same",
      useBias: !norm,
      kernelInitializer: seeded(seed),
      kernelRegularizer: l2(),
    }).apply(x) as tf.SymbolicTensor;
    if (norm) y = layers.batchNormalization({ name: `${name}_norm` }).apply(y) as tf.SymbolicTensor;
    return layers.activation({ name: `${name}_relu`, activation: "relu" }).apply(y) as tf.SymbolicTensor;
  };
  let x = conv("stem", 4, 3, 1, input);
  let y = conv("block_a", 4, 1, 2, x);
  y = conv("block_b", 4, 3, 3, y);
  x = layers.add({ name: "join" }).apply([x, y]) as tf.SymbolicTensor;
  if (dropout > 0) x = layers.dropout({ name: "drop", rate: dropout }).apply(x) as tf.SymbolicTensor;
  x = layers.globalAveragePooling2d({ name: "pool" }).apply(x) as tf.SymbolicTensor;
  x = layers.dense({
    name: "head",
    units: 3,
    activation: "softmax",
    kernelInitializer: seeded(4),
    biasRegularizer: penalty ? tf.regularizers.l1({ l1: 0.01 }) : undefined,
  }).apply(x) as tf.SymbolicTensor;
  return tf.model({ inputs: input, outputs: x, name: "residual_net" });
}

/** A net of dense layers. */
export function denseNet(): tf.LayersModel {
  return tf.sequential({
    name: "dense_net",
    layers: [
      tf.layers.dense({ units: 16, activation: "tanh", inputShape: [6], kernelInitializer: seeded(1) }),
      tf.layers.dense({ units: 8, activation: "relu", kernelInitializer: seeded(2) }),
      tf.layers.dense({ units: 2, kernelInitializer: seeded(3) }),
    ],
  });
}

/** Embedding and LSTM over sequences of 5 words out of 11. */
export function sequenceNet(): tf.LayersModel {
  const orthogonal = tf.initializers.glorotNormal({ seed: 9 });
  return tf.sequential({
    name: "sequence_net",
    layers: [
      tf.layers.embedding({ inputDim: 11, outputDim: 4, inputLength: 5, embeddingsInitializer: seeded(1) }),
      tf.layers.lstm({ units: 6, kernelInitializer: seeded(2), recurrentInitializer: orthogonal }),
      tf.layers.dense({ units: 3, activation: "softmax", kernelInitializer: seeded(3) }),
    ],
  });
}

/** Images `[samples, 8, 8, 3]` and one-hot classes of 3. */
export function images(samples: number): { x: tf.Tensor; y: tf.Tensor } {
  const x = tf.randomNormal([samples, 8, 8, 3], 0, 1, "float32", 5);
  return { x, y: classes(samples) };
}

/** One-hot classes of 3, in turn. */
export function classes(samples: number): tf.Tensor {
  return tf.tidy(() => tf.cast(tf.oneHot(tf.cast(tf.mod(tf.range(0, samples), 3), "int32"), 3), "float32"));
}

/** The model's weights as numbers. */
export function weightsOf(model: tf.LayersModel): Float32Array[] {
  return model.getWeights().map((w) => Float32Array.from(w.dataSync() as Float32Array));
}

/** The largest difference between two lists of weights, relative to the largest value of each weight. */
export function worstDifference(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let worst = 0;
  a.forEach((values, i) => {
    let difference = 0;
    let largest = 1e-12;
    values.forEach((value, j) => {
      difference = Math.max(difference, Math.abs(value - b[i]![j]!));
      largest = Math.max(largest, Math.abs(b[i]![j]!));
      if (Number.isNaN(value)) difference = Infinity;
    });
    worst = Math.max(worst, difference / largest);
  });
  return worst;
}

/** `[6] -> [2]` through two nested models whose layers, BatchNorm among them, have the same names. */
export function twinNet(): tf.LayersModel {
  const twin = (units: number, inputShape: [number], seed: number) => {
    const kernelInitializer = tf.initializers.glorotUniform({ seed });
    return tf.sequential({
      layers: [
        tf.layers.dense({ units, inputShape, kernelInitializer, activation: "tanh", name: "dense" }),
        tf.layers.batchNormalization({ name: "norm", momentum: 0.8 }),
      ],
    });
  };
  const kernelInitializer = tf.initializers.glorotUniform({ seed: 9 });
  return tf.sequential({
    layers: [twin(5, [6], 7), twin(5, [5], 8), tf.layers.dense({ units: 2, kernelInitializer })],
  });
}
