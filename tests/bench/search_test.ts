/** The search for the best cut: drift told apart from cuts, and what was measured kept. @module */
import assert from "node:assert/strict";
import { searchCuts, withRounds } from "../../bench/cuts.ts";
import type { Task } from "../../bench/contestant.ts";
import { createProgress } from "../../cli/progress.ts";
import { tf } from "../../deps.ts";
import { synthetic } from "../../runtime/data/synthetic.ts";
import { residualNet } from "../trainer/models.ts";

const TASK: Task = {
  makeModel: () => residualNet(),
  compile: () => ({ optimizer: tf.train.sgd(0.01), loss: "categoricalCrossentropy" }),
  data: synthetic({ input: [8, 8, 3], target: 3, count: 16, seed: 4 }),
  batch: 4,
};
const SEARCH = {
  task: TASK,
  common: { devices: ["cpu:0", "cpu:1"], engine: "tensorflow" },
  schedule: "1f1b",
  partition: "auto",
} as const;

const silent = () =>
  createProgress({ stream: { isTerminal: () => false, writeSync: (bytes) => bytes.length } });

Deno.test("withRounds() sets cuts side by side though the machine became slower between them", () => {
  const cuts = ["a", "b", "c", "d"].map((name) => ({ partition: [name], splitSize: 1, predictedSeconds: 1 }));
  // The same ratio to single in both, measured at twice the time; the third is slower; the fourth could not run.
  const rounds = [
    { cut: [0.5, 0.5, 0.6], single: [1, 1, 1.2] },
    { cut: [1, 1.2, 1], single: [2, 2.4, 2] },
    { cut: [2, 2, 2], single: [2, 2, 2] },
    { cut: [], single: [] },
  ];
  const table = withRounds(cuts, new Map(cuts.map((cut, i) => [cut, rounds[i]!])));
  assert.deepEqual(table.map(({ speedup }) => speedup), [2, 2, 1, undefined]);
  assert.equal(table[0]!.secondsPerStep, table[1]!.secondsPerStep);
  assert.deepEqual(table.map(({ secondsPerStep }) => secondsPerStep), [1, 1, 2, undefined]);
  assert.deepEqual(table[1]!.rounds, [1, 1.2, 1]);
  assert.deepEqual(table[1]!.singleRounds, [2, 2.4, 2]);
});

Deno.test("searchCuts() predicts every partition between blocks with every split size", async () => {
  using progress = silent();
  const found = await searchCuts({ ...SEARCH, enumerate: false }, progress, () => false);
  const { table, best, chosenBy, whole } = found;
  assert.deepEqual([chosenBy, whole], ["predicted", true]);
  assert.deepEqual([...new Set(table.map(({ partition }) => partition.join()))], [
    "block",
    "join",
    "pool",
    "head",
  ]);
  assert.ok(table.every((cut) => cut.predictedSeconds! > 0 && cut.secondsPerStep === undefined));
  assert.equal(best.predictedSeconds, Math.min(...table.map((cut) => cut.predictedSeconds!)));
});

Deno.test("searchCuts() measures until it is stopped, the best predicted first, and keeps what was measured", async () => {
  using progress = silent();
  let asked = 0;
  const search = { ...SEARCH, enumerate: true, splitSize: 2 };
  const found = await searchCuts(search, progress, () => asked++ === 2);
  const { table, best, chosenBy, whole } = found;
  const measured = table.filter(({ secondsPerStep }) => secondsPerStep !== undefined);
  const order = table.toSorted((a, b) => a.predictedSeconds! - b.predictedSeconds!);
  assert.deepEqual(new Set(measured), new Set(order.slice(0, 2)));
  assert.deepEqual(table.map(({ partition }) => partition.join()), ["block", "join", "pool", "head"]);
  assert.deepEqual([chosenBy, whole], ["given split size, measured partition", false]);
  assert.ok(measured.includes(best));
  assert.equal(measured[0]!.rounds!.length, 3);
  assert.equal(best.secondsPerStep, Math.min(...measured.map((cut) => cut.secondsPerStep!)));
});

Deno.test("searchCuts() says which part was given and which was predicted", async () => {
  using progress = silent();
  const search = { ...SEARCH, enumerate: false, partition: ["pool"] };
  const { chosenBy } = await searchCuts(search, progress, () => false);
  assert.equal(chosenBy, "given partition, predicted split size");
});

Deno.test("searchCuts() takes the partition and the split size that are given", async () => {
  using progress = silent();
  const search = { ...SEARCH, enumerate: false, partition: ["pool"], splitSize: 2 };
  const { table, chosenBy } = await searchCuts(search, progress, () => false);
  assert.deepEqual(table.map(({ partition, splitSize }) => [...partition, splitSize]), [["pool", 2]]);
  assert.equal(chosenBy, "given");
});
