/** The blocks of a timeline. @module */
import assert from "node:assert/strict";
import { COLOURS } from "../../bench/report/chart.ts";
import { timelinePlot } from "../../bench/report/timeline_plot.ts";
import type { Timeline, TimelineEvent } from "../../bench/results.ts";
import { timeline } from "./fixtures.ts";
import { blocksOf, placeOf, textsOf } from "./svg.ts";

const WAIT = "rgb(153,153,153)";
const near = (a: number, b: number, what: string) =>
  assert.ok(Math.abs(a - b) < 0.3, `${what}: ${a} against ${b}`);

function oneRow(...events: [kind: string, microBatch: number, start: number, end: number][]): Timeline {
  const row = events.map(([kind, microBatch, start, end]): TimelineEvent => ({
    kind,
    microBatch,
    start,
    end,
  }));
  return { schedule: "1f1b", rows: [{ device: "cpu:0", events: row }] };
}

Deno.test("timelinePlot() draws a block as wide as it is long, where it began", async () => {
  const svg = await timelinePlot(oneRow(["F", 0, 0, 100], ["B", 0, 100, 300], ["U", -1, 350, 400]));
  const [forward] = blocksOf(svg, COLOURS.blue);
  const [backward] = blocksOf(svg, COLOURS.orange);
  const [update] = blocksOf(svg, COLOURS.pink);
  assert.ok(forward && backward && update);
  near(backward.width, 2 * forward.width, "twice as long");
  near(update.width, forward.width / 2, "half as long");
  near(backward.x, forward.x + forward.width, "begins where F ends");
  near(update.x, backward.x + backward.width + forward.width / 2, "after 50 ms of nothing");
});

Deno.test("timelinePlot() draws a row a device, the first on top", async () => {
  const svg = await timelinePlot(timeline());
  const rows = [...new Set(blocksOf(svg, COLOURS.blue).map((block) => block.y))];
  assert.equal(rows.length, 2);
  for (const [i, device] of ["cpu:0", "cpu:1"].entries()) {
    const { y } = placeOf(svg, device);
    assert.ok(y >= rows[i]! && y <= rows[i]! + blocksOf(svg, COLOURS.blue)[0]!.height, device);
  }
  assert.ok(placeOf(svg, "cpu:0").y < placeOf(svg, "cpu:1").y);
});

Deno.test("timelinePlot() numbers a block where that fits", async () => {
  const texts = textsOf(
    await timelinePlot(
      oneRow(["F", 17, 0, 500], ["F", 18, 500, 520], ["F", 19, 520, 525], ["B", 20, 525, 1000]),
    ),
  );
  assert.ok(texts.includes("B20"), "kind and number in a wide block");
  assert.ok(
    texts.includes("17") && texts.includes("18"),
    "numbers alone where a block of the kind is narrow",
  );
  assert.ok(!texts.includes("19"), "nothing in a very narrow one");
});

Deno.test("timelinePlot() numbers all micro-batches of one call", async () => {
  const events: TimelineEvent[] = [
    { kind: "W", microBatch: 0, count: 2, start: 0, end: 500 },
    { kind: "W", microBatch: 2, count: 1, start: 500, end: 900 },
  ];
  const texts = textsOf(await timelinePlot({ schedule: "zb", rows: [{ device: "cpu:0", events }] }));
  assert.deepEqual(texts.filter((text) => /^W\d/.test(text)), ["W0–1", "W2"]);
});

Deno.test("timelinePlot() hatches waits and says how much of the step they are", async () => {
  const svg = await timelinePlot(oneRow(["wait", -1, 0, 250], ["F", 0, 250, 1000]));
  const [wait] = blocksOf(svg, WAIT);
  const [forward] = blocksOf(svg, COLOURS.blue);
  near(wait!.width * 3, forward!.width, "three times as long");
  assert.match(svg, /fill="url\(#/);
  assert.ok(
    textsOf(svg).some((text) => text.startsWith("1000 ms, 25 % of the devices&#39; time spent waiting")),
  );
  assert.ok(textsOf(svg).includes("75 % busy"));
});

Deno.test("timelinePlot() explains the kinds that occur, a new one too", async () => {
  const texts = textsOf(await timelinePlot(oneRow(["BW", 0, 0, 10], ["allreduce", -1, 10, 20])));
  assert.ok(texts.includes("BW backward, both at once") && texts.includes("allreduce"));
  assert.ok(!texts.some((text) => text.startsWith("W ")));
});
