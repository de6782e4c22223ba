/** Tests of captured updates: every optimizer against its rule in plain ops, and against tfjs's own. @module */
import assert from "node:assert/strict";
import { close } from "./compare.ts";
import { test } from "./engine.ts";
import { closeWeights, data, plainWeights, trainPlainly, withStages } from "./stage_fixtures.ts";
import { OPTIMIZERS, updated } from "./optimizer_cases.ts";

test("a stage whose weights are all frozen tells its penalty, captured and eager", () => {
  const model = updated();
  for (const layer of model.layers) layer.trainable = false;
  return withStages(model, {}, (make) => {
    const [captured, eager] = [make("captured"), make("eager")].map((stages) => {
      stages.step(...data(4, 1, [4]), { hold: true });
      return stages.update();
    });
    close([captured!], [eager!], 1e-6);
    assert.ok(captured! > 0);
  });
});

for (const [optimizer, tolerance, plain] of OPTIMIZERS) {
  test(`ten captured updates equal eager ones: ${JSON.stringify(optimizer)}`, () => {
    return withStages(updated(), {}, async (make, { model }) => {
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
