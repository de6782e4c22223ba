/** Tests of captured updates: every optimizer against its rule in plain ops, and against tfjs's own. @module */
import { tf } from "../../deps.ts";
import type { OptimizerConfig } from "../../stages/optimizers.ts";
import { close } from "./compare.ts";
import { test } from "./engine.ts";
import { closeWeights, data, plainWeights, trainPlainly, withStages } from "./stage_fixtures.ts";
import { sequential } from "./stages.ts";

const L = tf.layers;

/** Optimizers, with tfjs's own where it has one of the same rule. */
const OPTIMIZERS: [OptimizerConfig, tolerance: number, plain?: () => tf.Optimizer][] = [
  [{ name: "sgd", learningRate: 0.1 }, 1e-6, () => tf.train.sgd(0.1)],
  [{ name: "sgd", learningRate: 0.1, weightDecay: 0.1 }, 1e-6],
  [{ name: "momentum", learningRate: 0.1, momentum: 0.8 }, 1e-6, () => tf.train.momentum(0.1, 0.8)],
  [{ name: "momentum", learningRate: 0.1, nesterov: true }, 1e-6],
  [{ name: "adam", learningRate: 0.01 }, 1e-5, () => tf.train.adam(0.01)],
  [
    { name: "adam", learningRate: 0.01, epsilon: 0.1, beta1: 0.5 },
    1e-5,
    () => tf.train.adam(0.01, 0.5, 0.999, 0.1),
  ],
  [{ name: "adamw", learningRate: 0.01, weightDecay: 0.3 }, 1e-5],
  [{ name: "rmsprop", learningRate: 0.01 }, 1e-5, () => tf.train.rmsprop(0.01, 0.9, 0, 1e-7)],
  [
    { name: "rmsprop", learningRate: 0.01, momentum: 0.7 },
    1e-5,
    () => tf.train.rmsprop(0.01, 0.9, 0.7, 1e-7),
  ],
  [{ name: "rmsprop", learningRate: 0.01, centered: true, epsilon: 1e-3 }, 1e-5],
  [{ name: "adagrad", learningRate: 0.1 }, 1e-6, () => tf.train.adagrad(0.1)],
  [{ name: "adadelta", learningRate: 1 }, 1e-5, () => tf.train.adadelta(1, 0.95, 1e-7)],
  [{ name: "adamax", learningRate: 0.02, decay: 0.1 }, 1e-5],
];

for (const [optimizer, tolerance, plain] of OPTIMIZERS) {
  test(`ten captured updates equal eager ones: ${JSON.stringify(optimizer)}`, () => {
    const model = sequential(
      L.dense({ units: 5, inputShape: [4], activation: "tanh", kernelRegularizer: "l1l2" }),
      L.dense({ units: 3 }),
    );
    return withStages(model, {}, async (make) => {
      const [captured, eager] = [make("captured", optimizer), make("eager", optimizer)];
      const batch = (step: number) => data(4, step, [4]);
      for (let step = 0; step < 10; step++) {
        // The learning rate may change from step to step.
        const scalars = plain ? {} : { learningRate: optimizer.learningRate! * (step < 5 ? 1 : 0.5) };
        const losses = [captured, eager].map((stages) => stages.step(...batch(step), { scalars }));
        close(losses[0]!, losses[1]!, 10 * tolerance, `loss of step ${step}`);
      }
      closeWeights(captured.weights(), eager.weights(), tolerance);
      if (!plain) return;
      const own = plain();
      for (let step = 0; step < 10; step++) await trainPlainly(model, batch(step), own);
      closeWeights(captured.weights(), plainWeights(model), 5 * tolerance, "tfjs");
      own.dispose();
    });
  });
}
