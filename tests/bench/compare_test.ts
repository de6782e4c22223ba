/** The comparison itself: strategies in turn, whole rounds alone kept. @module */
import assert from "node:assert/strict";
import { compare, type Plan } from "../../bench/compare.ts";
import { createProgress } from "../../cli/progress.ts";
import { tf } from "../../deps.ts";
import type { Samples } from "../../runtime/data/samples.ts";
import { synthetic } from "../../runtime/data/synthetic.ts";
import { residualNet } from "../trainer/models.ts";

const DATA = synthetic({ input: [8, 8, 3], target: 3, count: 64, seed: 4 });
const COMMON = { devices: ["cpu:0", "cpu:1"], engine: "tensorflow" } as const;

function plan(steps: number, data: Samples = DATA): Plan {
  return {
    task: {
      makeModel: () => residualNet(),
      compile: () => ({ optimizer: tf.train.sgd(0.01), loss: "categoricalCrossentropy" }),
      data,
      batch: 4,
    },
    entries: [
      { name: "pipeline", options: { ...COMMON, strategy: "pipeline", microBatches: 2, partition: "auto" } },
      { name: "modelParallel", options: { ...COMMON, strategy: "modelParallel", partition: "auto" } },
      { name: "single", options: { ...COMMON, strategy: "single", devices: ["cpu:0"] } },
    ],
    steps,
    weights: { up: 1, rounds: 1 },
  };
}

const silent = () =>
  createProgress({ stream: { isTerminal: () => false, writeSync: (bytes) => bytes.length } });

Deno.test("compare() times every strategy in every round, cut where the first of them found", async () => {
  using progress = silent();
  const results = await compare(plan(3), progress, () => false, ({ contestants, rounds, failure }) => {
    assert.deepEqual([rounds, failure], [3, undefined]);
    const [first, second] = contestants.map(({ trainer }) => trainer);
    assert.deepEqual(second!.options.partition, first!.partition); // not looked for again
    return contestants.map((contestant) => ({
      name: contestant.name,
      ...contestant.result(contestants[2]!.rounds),
    }));
  });
  assert.deepEqual(results.map(({ name, rounds }) => [name, rounds.length]), [
    ["pipeline", 3],
    ["modelParallel", 3],
    ["single", 3],
  ]);
  assert.equal(results[0]!.partition.length, 1);
  assert.equal(results[2]!.speedup, 1);
  assert.ok(results.every(({ secondsPerStep }) => secondsPerStep > 0));
});

Deno.test("compare() finishes the round in which it is stopped, and begins no other", async () => {
  using progress = silent();
  let asked = 0;
  // Asked before each strategy comes up, and before each round.
  const stopped = () => ++asked > 5;
  const lengths = await compare(plan(9), progress, stopped, ({ contestants, rounds }) => {
    assert.equal(rounds, 2);
    return contestants.map((contestant) => contestant.rounds.length);
  });
  assert.deepEqual(lengths, [2, 2, 2]);
});

Deno.test("compare() keeps the whole rounds before a failure", async () => {
  using progress = silent();
  let reads = 0;
  const broken: Samples = {
    ...DATA,
    read(...args) {
      // Four samples a step; each of three strategies is a step ahead of the one that runs.
      if (++reads > 4 * 3 * 4) throw new Error("the disk is gone");
      return DATA.read(...args);
    },
  };
  await compare(plan(9, broken), progress, () => false, ({ contestants, rounds, failure }) => {
    assert.match(String(failure), /the disk is gone/);
    assert.ok(rounds >= 1 && rounds < 9, String(rounds));
    assert.ok(contestants.every((contestant) => contestant.rounds.length === rounds));
  });
});

Deno.test("compare() throws what went wrong before a first round was whole", async () => {
  using progress = silent();
  const broken: Samples = {
    ...DATA,
    read() {
      throw new Error("the disk is gone");
    },
  };
  await assert.rejects(compare(plan(2, broken), progress, () => false, () => 0), /the disk is gone/);
  await assert.rejects(
    compare(plan(2), progress, () => true, () => 0),
    /Interrupted before a round was whole/,
  );
});
