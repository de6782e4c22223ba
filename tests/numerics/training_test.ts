/** Tests of losses, metrics and optimizers: both engines compute the same. @module */
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { close } from "../tensorflow/compare.ts";
import { test } from "../tensorflow/engine.ts";
import { LOSS_CASES, withLoss } from "../tensorflow/loss_cases.ts";
import { OPTIMIZERS, updated } from "../tensorflow/optimizer_cases.ts";
import { closeWeights, data, withStages } from "../tensorflow/stage_fixtures.ts";
import { type StageKind, Stages } from "../tensorflow/stages.ts";

const wasm = await startBackend();
registerLayers();

/** Runs the same on wasm, then on tensorflow. */
async function onBoth<T>(run: (kind: StageKind) => T): Promise<[wasm: T, tensorflow: T]> {
  await tf.setBackend("wasm");
  const first = run(wasm);
  await tf.setBackend("tensorflow");
  return [first, run("captured")];
}

for (const one of LOSS_CASES) {
  test(`both engines train and evaluate ${one.loss}, ${one.units} wide, alike`, () =>
    withLoss(one, async (prepared, x, y) => {
      const [ours, theirs] = await onBoth((kind) => {
        const stages = new Stages(prepared, kind);
        try {
          const evaluated = stages.evaluate([x], [y]);
          const trained = stages.step([x], [y]);
          return { evaluated, trained, weights: stages.weights() };
        } finally {
          stages.dispose();
        }
      });
      close(ours.evaluated, theirs.evaluated, 1e-5, "evaluation");
      close(ours.trained, theirs.trained, 1e-5, "training");
      closeWeights(ours.weights, theirs.weights, 1e-5);
    }));
}

for (const [optimizer, tolerance] of OPTIMIZERS) {
  test(`both engines take the same ten updates: ${JSON.stringify(optimizer)}`, () =>
    withStages(updated(), {}, async (_make, prepared) => {
      const [ours, theirs] = await onBoth((kind) => {
        const stages = new Stages(prepared, kind, optimizer);
        try {
          const losses = Array.from({ length: 10 }, (_, step) => stages.step(...data(4, step, [4]))[0]!);
          return { losses, weights: stages.weights() };
        } finally {
          stages.dispose();
        }
      });
      close(ours.losses, theirs.losses, 10 * tolerance, "losses");
      closeWeights(ours.weights, theirs.weights, 10 * tolerance);
    }));
}
