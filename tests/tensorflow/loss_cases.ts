/** Every loss that tfjs-layers has by name, with metrics, each on a small model of its own. @module */
import { tf } from "../../deps.ts";
import { type Host, host, prepare, type Prepared } from "./stages.ts";

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

/** A loss with the metrics that go with it. */
export interface LossCase {
  readonly loss: string;
  readonly metrics: readonly string[];
  /** Width of the output. */
  readonly units: number;
}

/** All of them. */
export const LOSS_CASES: readonly LossCase[] = [1, 3].flatMap((units) =>
  LOSSES.flatMap((loss) => {
    const sparse = loss.startsWith("sparse");
    if (units === 1 && (sparse || loss === "categoricalCrossentropy")) return []; // over classes
    // Precision counts one column; the sparse targets are class numbers, no distributions.
    const metrics = sparse ? ["accuracy"] : METRICS.filter((name) => name !== "precision" || units === 1);
    return [{ loss, metrics, units }];
  })
);

/** Gives `use` the stage of a loss's model and a batch. */
export async function withLoss(
  { loss, metrics, units }: LossCase,
  use: (prepared: Prepared, x: Host, y: Host) => void | Promise<void>,
): Promise<void> {
  const activation = units === 1 ? "sigmoid" : "softmax";
  const model = tf.sequential({ layers: [tf.layers.dense({ units, activation, inputShape: [4] })] });
  const prepared = await prepare(model, { loss, metrics: [...metrics] });
  const sparse = loss.startsWith("sparse");
  const y: Host = {
    shape: [BATCH, sparse ? 1 : units],
    dtype: "float32",
    values: sparse
      ? Float32Array.from({ length: BATCH }, (_, i) => i % units)
      : Float32Array.from({ length: BATCH * units }, (_, i) => Number(i % (units + 1) === 0)),
  };
  try {
    await use(prepared, host([BATCH, 4], 1), y);
  } finally {
    model.dispose();
  }
}
