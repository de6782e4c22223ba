/** Every optimizer, in the ways in which its rule differs, and a model to update. @module */
import { tf } from "../../deps.ts";
import type { OptimizerConfig } from "../../stages/optimizers.ts";
import { sequential } from "./stages.ts";

/** Optimizers, with tfjs's own where it has one of the same rule. */
export const OPTIMIZERS: [OptimizerConfig, tolerance: number, plain?: () => tf.Optimizer][] = [
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

/** `[4] -> [3]` with penalties. */
export function updated(): tf.Sequential {
  const { dense } = tf.layers;
  return sequential(
    dense({ units: 5, inputShape: [4], activation: "tanh", kernelRegularizer: "l1l2" }),
    dense({ units: 3 }),
  );
}
