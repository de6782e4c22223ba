/** The trainer's forecast: a table from one profile, and training that goes on as if nothing had been asked. */
import assert from "node:assert/strict";
import { synthetic } from "../../runtime/data/synthetic.ts";
import { residualNet, weightsOf, worstDifference } from "./models.ts";
import { PIPELINE, trainerFor } from "./trainers.ts";

const DATA = synthetic({ input: [8, 8, 3], target: 3, count: 16, seed: 4 });

for (const engine of ["tensorflow", "wasm"] as const) {
  Deno.test(`forecast() answers with a time for every partition and split size: ${engine}`, async () => {
    await using trainer = await trainerFor(residualNet({ norm: true }), { ...PIPELINE, engine });
    const { entries, best } = await trainer.forecast(DATA, {
      batchSize: 8,
      partitions: [["block_b"], ["pool"]],
      splitSizes: [1, 8],
    });
    assert.deepEqual(entries.map(({ partition, splitSize }) => [...partition, splitSize]), [
      ["block_b", 1],
      ["block_b", 8],
      ["pool", 1],
      ["pool", 8],
    ]);
    assert.ok(entries.every(({ seconds }) => seconds > 0 && seconds < 10), JSON.stringify(entries));
    assert.equal(best.seconds, Math.min(...entries.map(({ seconds }) => seconds)));
  });
}

Deno.test("forecast() takes the blocks' partitions and the powers of two of itself", async () => {
  await using trainer = await trainerFor(residualNet());
  const { entries } = await trainer.forecast(DATA, { batchSize: 4 });
  const cuts = [...new Set(entries.map(({ partition }) => partition.join()))];
  assert.deepEqual(cuts, ["block_a", "join", "pool", "head"]);
  assert.deepEqual(entries.slice(0, 3).map(({ splitSize }) => splitSize), [1, 2, 4]);
});

Deno.test("forecast() leaves weights and training as they were, before the first step and between steps", async () => {
  const trained = async (asks: boolean) => {
    const model = residualNet({ norm: true });
    await using trainer = await trainerFor(model);
    for (let epoch = 0; epoch < 2; epoch++) {
      if (asks) await trainer.forecast(DATA, { batchSize: 8, splitSizes: [4] });
      await trainer.fit(DATA, { batchSize: 8, epochs: 1, shuffle: false });
    }
    return weightsOf(model);
  };
  assert.equal(worstDifference(await trained(true), await trained(false)), 0);
});

Deno.test("forecast() refuses what cannot be, before any worker starts", async () => {
  await using trainer = await trainerFor(residualNet());
  await assert.rejects(trainer.forecast(DATA, { partitions: [["nowhere"]] }), /RangeError: .*"nowhere"/);
  await assert.rejects(trainer.forecast(DATA, { splitSizes: [0] }), /Cannot use splitSize 0/);
  await assert.rejects(
    trainer.forecast(DATA, { batchSize: 8, partitions: [] }),
    /there is no partition, or no split size/,
  );
  assert.equal(trainer.engine, "tensorflow");
});
