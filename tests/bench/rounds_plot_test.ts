/** The lines of the rounds. @module */
import assert from "node:assert/strict";
import { COLOURS } from "../../bench/report/chart.ts";
import { roundsPlot } from "../../bench/report/rounds_plot.ts";
import { rowsOf } from "../../bench/report/rows.ts";
import { RESULTS } from "./fixtures.ts";
import { textsOf } from "./svg.ts";

Deno.test("roundsPlot() draws a line a strategy with a point a round, slower is higher", async () => {
  const svg = await roundsPlot(rowsOf(RESULTS.resnet50));
  const lines = [...svg.matchAll(/<path d="M([^"LZ]+(?:L[^"LZ]+){4})" fill="none"[^>]*stroke="([^"]+)"/g)];
  assert.equal(lines.length, 8);
  const heights = new Map(lines.map(([, points, stroke]) => [
    stroke!,
    points!.split("L").map((point) => Number(point.split(" ")[1])),
  ]));
  const modelParallel = heights.get(COLOURS.red)!;
  const zeroBubble = heights.get(COLOURS.green)!;
  assert.ok(modelParallel.every((y, round) => y < zeroBubble[round]!), "model parallel is slower");
  const { rounds } = RESULTS.resnet50!.modelParallel!;
  assert.equal(modelParallel.indexOf(Math.min(...modelParallel)), rounds.indexOf(Math.max(...rounds)));
});

Deno.test("roundsPlot() names every strategy and every round", async () => {
  const texts = textsOf(await roundsPlot(rowsOf(RESULTS.resnet50)));
  for (const name of ["sequential", "model parallel", "pipeline 1f1b", "torch pipeline", "1", "5"]) {
    assert.ok(texts.includes(name), name);
  }
});
