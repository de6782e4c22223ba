/** What a run that is broken off keeps: its baseline, and the best of what was measured. @module */
import assert from "node:assert/strict";
import { BENCH_STRATEGIES } from "../../bench/options.ts";
import { reportHtml } from "../../bench/report/html.ts";
import { resultsTable } from "../../bench/report/table.ts";
import { resnet50Entries } from "../../bench/resnet50.ts";
import { cutsAlone, unetEntries } from "../../bench/unet.ts";
import { RESULTS, UNET } from "./fixtures.ts";

const COMMON = { devices: ["cpu:0", "cpu:1"] };
const { settings, pipeline } = UNET;
const table = pipeline!.table;
const alone = (best: typeof table[number]) =>
  cutsAlone(
    settings,
    { table, best, chosenBy: "measured", whole: false, engine: "tensorflow" },
    { steps: 5 },
  ).results.unet!.pipeline!;

Deno.test("single comes up first in both comparisons, so that all that is kept has its speedup", () => {
  const options = {
    strategies: BENCH_STRATEGIES,
    schedules: ["gpipe", "1f1b"] as const,
    microBatches: 8,
    partition: "auto" as const,
  };
  const names = ["single", "gpipe", "1f1b", "modelParallel", "ring", "parameterServer"];
  assert.deepEqual(resnet50Entries(options, COMMON).map(({ name }) => name), names);
  const cuts = { best: table[0]! };
  assert.deepEqual(
    unetEntries(options, COMMON, "1f1b", cuts).map(({ name }) => name),
    ["single", "pipeline", "modelParallel", "ring", "parameterServer"],
  );
});

Deno.test("an enumeration that is broken off has the best of what was measured", () => {
  assert.deepEqual(alone(table[4]!).best, {
    partition: ["decoder4"],
    splitSize: 4,
    secondsPerStep: 0.6,
    chosenBy: "measured",
  });
  assert.equal(alone(table[5]!).best, undefined);
});

Deno.test("an interrupted run says so in the terminal and on the page, and lists no strategy that was not trained", () => {
  const results = { ...RESULTS, resnet50: undefined, unet: { settings, pipeline: alone(table[4]!) } };
  const text = resultsTable({ ...results, interrupted: true }, { colour: false, columns: 120 });
  assert.match(text, /^interrupted before its end/m);
  assert.doesNotMatch(text, /^strategy/m);
  assert.match(reportHtml({ ...results, interrupted: true }, []), /interrupted before its end/);
  assert.doesNotMatch(reportHtml(results, []), /interrupted before/);
});
