/** Schedules of models with skips: every partition runs with the rings that it asks for, and with no fewer. */
import assert from "node:assert/strict";
import { parseSchedule } from "../../runtime/schedules/action.ts";
import {
  capacitiesFor,
  firstMicroBatches,
  makeSchedule,
  SCHEDULES,
} from "../../runtime/schedules/schedules.ts";
import { simulate } from "../../runtime/schedules/simulate.ts";
import { validate } from "../../runtime/schedules/validate.ts";
import { allowedCuts } from "../../stages/partition.ts";
import { linksOf, routesOf } from "../../stages/routes.ts";
import { everyCut, sketch, SKETCHES } from "../stages/graphs.ts";

/** Times that differ from stage to stage, the same at every call. */
function times(stages: number, seed: number) {
  return Array.from({ length: stages }, (_, s) => ({
    F: 1 + (s * 7 + seed) % 5,
    B: 1 + (s * 3 + seed) % 4,
    W: 1 + (s + seed) % 3,
  }));
}

Deno.test("no schedule of any partition waits for ever in its rings, whatever the number of micro-batches", () => {
  let checked = 0;
  for (const [name, layers] of Object.entries(SKETCHES)) {
    const graph = sketch(layers);
    const allowed = allowedCuts(graph);
    for (let stages = 2; stages <= 5; stages++) {
      for (const cuts of everyCut(layers.length, stages)) {
        if (!cuts.every((cut) => allowed[cut])) continue;
        const links = linksOf(routesOf(graph, { cuts }));
        for (const schedule of SCHEDULES) {
          for (const microBatches of [1, 2, 3, 5, 8]) {
            const own = times(stages, cuts[0]! + microBatches);
            const whole = makeSchedule(schedule, { stages, microBatches, times: own });
            const capacities = capacitiesFor(whole, microBatches, own, links);
            assert.equal(capacities.activations.length, links.length);
            for (let m = 1; m <= microBatches; m++) {
              const label = `${name} cut at ${cuts}, ${schedule}, ${m} of ${microBatches}`;
              const part = firstMicroBatches(whole, m);
              assert.doesNotThrow(() => validate(part, m, capacities, links), label);
            }
            checked++;
          }
        }
      }
    }
  }
  assert.ok(checked > 5000, `${checked} checked`);
});

Deno.test("a skip's ring with too little room is refused, and the stages that wait are named", () => {
  // Stage 0 sends to 1 and straight to 2; 1F1B keeps three micro-batches in flight there.
  const links = linksOf([
    { from: 0, to: 1, needsGradient: true },
    { from: 0, to: 2, needsGradient: true },
    { from: 1, to: 2, needsGradient: true },
  ]);
  const schedule = makeSchedule("gpipe", { stages: 3, microBatches: 3 });
  validate(schedule, 3, { activations: [3, 3, 3], gradients: [3, 3, 3] }, links);
  assert.throws(
    () => validate(schedule, 3, { activations: [3, 2, 3], gradients: [3, 3, 3] }, links),
    {
      name: "DeadlockError",
      message:
        /stage 0 waits, after F1, in F2 for room to send 2 of activations from stage 0 to 2 \(2 slots\)/,
    },
  );
});

Deno.test("simulate() waits for gradients from every stage that a tensor went to", () => {
  const links = linksOf([
    { from: 0, to: 1, needsGradient: true },
    { from: 0, to: 2, needsGradient: true },
    { from: 1, to: 2, needsGradient: false },
  ]);
  const schedule = parseSchedule("F0 BW0 U\nF0 BW0 U\nF0 BW0 U");
  const own = [{ F: 1, B: 1, W: 1 }, { F: 1, B: 1, W: 1 }, { F: 10, B: 1, W: 1 }];
  const { played } = simulate(schedule, { times: own, links });
  // Nothing comes back from stage 2 to 1, which need not wait; stage 0 waits for both.
  assert.deepEqual(played.map((actions) => actions[1]!.start), [14, 2, 12]);
});

Deno.test("stages that no tensor joins run side by side", () => {
  const links = linksOf([{ from: 0, to: 2, needsGradient: true }, { from: 1, to: 2, needsGradient: true }]);
  const schedule = parseSchedule("F0 BW0 U\nF0 BW0 U\nF0 BW0 U");
  const { played } = simulate(schedule, { links });
  assert.deepEqual(played.map((actions) => actions[0]!.start), [0, 0, 1]);
});

Deno.test("a skip's ring has a slot for each micro-batch in flight, and one more", () => {
  const links = linksOf([
    { from: 0, to: 1, needsGradient: true },
    { from: 0, to: 2, needsGradient: true },
    { from: 1, to: 2, needsGradient: true },
  ]);
  const schedule = makeSchedule("1f1b", { stages: 3, microBatches: 12 });
  const { activations, gradients } = capacitiesFor(schedule, 12, undefined, links);
  assert.ok(activations.every((slots) => slots >= 2 && slots <= 4), String(activations));
  assert.ok(gradients.every((slots) => slots >= 2 && slots <= 4), String(gradients));
});
