/** Trainers for tests. @module */
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import type { Trainer } from "../../runtime/trainer/trainer.ts";

/** Two stages of the residual net. */
export const PIPELINE: DistributeOptions = {
  strategy: "pipeline",
  devices: ["cpu:0", "cpu:1"],
  partition: ["block_b"],
  engine: "tensorflow",
  microBatches: 2,
};

/** A trainer of a classifier. */
export async function trainerFor(
  model: tf.LayersModel,
  options: DistributeOptions = PIPELINE,
): Promise<Trainer> {
  const trainer = await distribute(model, options);
  trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "categoricalCrossentropy", metrics: ["accuracy"] });
  return trainer;
}

/** A trainer of the dense net, cut after its first layer. */
export async function denseTrainer(model: tf.LayersModel): Promise<Trainer> {
  const trainer = await distribute(model, { ...PIPELINE, partition: [1] });
  trainer.compile({ optimizer: tf.train.sgd(0.1), loss: "meanSquaredError" });
  return trainer;
}
