/** Every loss and metric that tfjs-layers has by name, captured, against the plain model's own evaluation. @module */
import { tf } from "../../deps.ts";
import { close } from "./compare.ts";
import { test } from "./engine.ts";
import { LOSS_CASES, withLoss } from "./loss_cases.ts";
import { Stages } from "./stages.ts";

for (const one of LOSS_CASES) {
  const { loss, units } = one;
  const metrics = [...one.metrics];
  test(`captured ${loss} with ${metrics.length} metrics, ${units} wide, equals the model's own`, () =>
    withLoss(one, (prepared, x, y) => {
      const stages = new Stages(prepared, "captured");
      try {
        const evaluated = stages.evaluate([x], [y]);
        const trained = stages.step([x], [y]);
        const { model } = prepared;
        model.compile({ optimizer: "sgd", loss, metrics });
        const [xs, ys] = [x, y].map((t) => tf.tensor(t.values as Float32Array, t.shape as number[]));
        const own = [model.evaluate(xs!, ys!, { batchSize: x.shape[0] })].flat() as tf.Scalar[];
        const expected = own.map((t) => t.dataSync()[0]!);
        close(evaluated, expected, 1e-5, "evaluation");
        close(trained, expected, 1e-5, "training");
        tf.dispose([xs!, ys!, ...own]);
      } finally {
        stages.dispose();
      }
    }));
}
