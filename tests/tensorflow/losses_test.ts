/** Every loss and metric that tfjs-layers has by name, captured, against the plain model's own evaluation. @module */
import { tf } from "../../deps.ts";
import { close } from "./compare.ts";
import { test } from "./engine.ts";
import { type Host, host, prepare, Stages } from "./stages.ts";

const LOSSES = [
  ...["meanSquaredError", "meanAbsoluteError", "meanAbsolutePercentageError", "meanSquaredLogarithmicError"],
  ...[
    "squaredHinge",
    "hinge",
    "categoricalHinge",
    "logcosh",
    "categoricalCrossentropy",
    "binaryCrossentropy",
  ],
  ...["sparseCategoricalCrossentropy", "kullbackLeiblerDivergence", "poisson", "cosineProximity"],
];
const METRICS = [
  "binaryAccuracy",
  "categoricalAccuracy",
  "precision",
  "mse",
  "mae",
  "mape",
  "cosine",
  "accuracy",
];
const BATCH = 6;

for (const units of [1, 3]) {
  for (const loss of LOSSES) {
    const sparse = loss.startsWith("sparse");
    if (units === 1 && (sparse || loss === "categoricalCrossentropy")) continue; // over classes
    // Precision counts one column; the sparse targets are class numbers, no distributions.
    const metrics = sparse ? ["accuracy"] : METRICS.filter((name) => name !== "precision" || units === 1);
    test(`captured ${loss} with ${metrics.length} metrics, ${units} wide, equals the model's own`, async () => {
      const activation = units === 1 ? "sigmoid" : "softmax";
      const model = tf.sequential({ layers: [tf.layers.dense({ units, activation, inputShape: [4] })] });
      const prepared = await prepare(model, { loss, metrics });
      const x = host([BATCH, 4], 1);
      const y: Host = {
        shape: [BATCH, sparse ? 1 : units],
        dtype: "float32",
        values: sparse
          ? Float32Array.from({ length: BATCH }, (_, i) => i % units)
          : Float32Array.from({ length: BATCH * units }, (_, i) => Number(i % (units + 1) === 0)),
      } as Host;
      const stages = new Stages(prepared, "captured");
      try {
        const evaluated = stages.evaluate([x], [y]);
        const trained = stages.step([x], [y]);
        model.compile({ optimizer: "sgd", loss, metrics });
        const [xs, ys] = [x, y].map((t) => tf.tensor(t.values as Float32Array, t.shape as number[]));
        const own = [model.evaluate(xs!, ys!, { batchSize: BATCH })].flat() as tf.Scalar[];
        const expected = own.map((t) => t.dataSync()[0]!);
        close(evaluated, expected, 1e-5, "evaluation");
        close(trained, expected, 1e-5, "training");
        tf.dispose([xs!, ys!, ...own]);
      } finally {
        stages.dispose();
        model.dispose();
      }
    });
  }
}
