/** The way in: a model and options make a trainer. @module */
import { tf } from "../deps.ts";
import { modelGraph } from "../stages/graph.ts";
import type { ProgressReport } from "./coordinator/coordinator.ts";
import { shown } from "./checks.ts";
import { type DistributeOptions, resolveOptions } from "./options.ts";
import { Trainer } from "./trainer/trainer.ts";

/**
 * Distributes a model over devices.
 *
 * Everything is checked here; workers start with the first `fit`, `evaluate` or `predict`.
 *
 * @param model any `tf.LayersModel` with an input shape; it holds the trained weights afterwards
 * @throws {TypeError|RangeError} for an option that does not fit, naming value, expectation and remedy
 *
 * @example
 * ```ts ignore
 * const trainer = await distribute(model, { strategy: "pipeline", devices: ["cpu:0", "cpu:1"], microBatches: 8 });
 * trainer.compile({ optimizer: "adam", loss: "categoricalCrossentropy", metrics: ["accuracy"] });
 * await trainer.fit(x, y, { batchSize: 32, epochs: 3 });
 * await trainer.dispose();
 * ```
 */
export async function distribute(
  model: tf.LayersModel,
  options: DistributeOptions = {},
  progress?: ProgressReport,
): Promise<Trainer> {
  if (typeof (model as unknown) !== "object" || model === null || !("layers" in model)) {
    throw new TypeError(`Cannot distribute ${shown(model)}: expected a tf.LayersModel`);
  }
  await tf.ready();
  const graph = modelGraph(model);
  return new Trainer(model, graph, resolveOptions(options, graph), progress);
}
