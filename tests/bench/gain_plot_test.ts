/** The bars of the gain. @module */
import assert from "node:assert/strict";
import { COLOURS } from "../../bench/report/chart.ts";
import { comparisonsOf } from "../../bench/report/comparisons.ts";
import { gainPlot as draw } from "../../bench/report/gain_plot.ts";
import type { BenchResults } from "../../bench/results.ts";
import { RESULTS, strategy, UNET } from "./fixtures.ts";
import { blocksOf, placeOf, textsOf } from "./svg.ts";

const gainPlot = (results: BenchResults) => draw(comparisonsOf(results)[0]!);

const PUBLISHED_FILL = "#c9c9c9";
const SINGLE = [1, 1, 1];

/** Gains of -25 % (model parallel), +25 % and +100 % (pipeline). */
const ROUND: BenchResults = {
  ...RESULTS,
  resnet50: {
    settings: RESULTS.resnet50!.settings,
    single: strategy(SINGLE, SINGLE),
    modelParallel: strategy([4 / 3, 4 / 3, 4 / 3], SINGLE),
    pipeline: {
      gpipe: strategy([0.8, 0.8, 0.8], SINGLE),
      "zero-bubble": strategy([0.5, 0.5, 0.5], SINGLE),
    },
  },
};

Deno.test("gainPlot() draws a bar as tall as its gain, a loss below the axis", async () => {
  const svg = await gainPlot(ROUND);
  const [loss, quarter, whole] = blocksOf(svg, COLOURS.blue);
  assert.ok(loss && quarter && whole);
  const zero = quarter.y + quarter.height;
  assert.ok(Math.abs(whole.y + whole.height - zero) < 0.2);
  assert.ok(Math.abs(loss.y - zero) < 0.2, `a loss begins at ${loss.y}, the axis lies at ${zero}`);
  assert.ok(Math.abs(whole.height / quarter.height - 4) < 0.02, `${whole.height} against ${quarter.height}`);
  assert.ok(Math.abs(loss.height - quarter.height) < 0.2);
});

Deno.test("gainPlot() draws the published gains on the same scale, and says whose they are", async () => {
  const svg = await gainPlot(ROUND);
  const bars = blocksOf(svg, PUBLISHED_FILL);
  const scale = blocksOf(svg, COLOURS.blue)[2]!.height / 100;
  assert.deepEqual(bars.map((bar) => Math.round(bar.height / scale)), [40, 7, 20, 49, 54]);
  const texts = textsOf(svg);
  for (const text of ["−40 %", "−7 %", "+20 %", "+49 %", "+54 %", "published, other hardware"]) {
    assert.ok(texts.includes(text), text);
  }
});

Deno.test("gainPlot() labels every bar of ours with its schedule and its gain", async () => {
  const svg = await gainPlot(ROUND);
  const [loss, quarter, whole] = blocksOf(svg, COLOURS.blue);
  const expected = [["Stagger", "−25 %", loss], ["gpipe", "+25 %", quarter], [
    "zero-bubble",
    "+100 %",
    whole,
  ]] as const;
  for (const [name, gain, bar] of expected) {
    const middle = bar!.x + bar!.width / 2;
    assert.ok(Math.abs(placeOf(svg, name).x - middle) < 1, name);
    const place = placeOf(svg, gain);
    assert.ok(Math.abs(place.x - middle) < 1, gain);
    assert.ok(place.y < bar!.y || place.y > bar!.y + bar!.height, `${gain} stands on its bar`);
  }
});

Deno.test("gainPlot() shows the rounds' spread as a whisker", async () => {
  const resnet50 = { ...ROUND.resnet50!, pipeline: { gpipe: strategy([0.8, 0.5, 1], SINGLE) } };
  const svg = await gainPlot({ ...ROUND, resnet50 });
  const bar = blocksOf(svg, COLOURS.blue)[1]!;
  const scale = bar.height / 25;
  const middle = bar.x + bar.width / 2;
  const whisker = [...svg.matchAll(/<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"/g)]
    .map((match) => match.slice(1).map(Number))
    .find(([x1, , x2]) => Math.abs(x1! - middle) < 0.6 && Math.abs(x2! - middle) < 0.6);
  assert.ok(whisker, "a whisker on the bar's middle");
  assert.ok(Math.abs(Math.abs(whisker[1]! - whisker[3]!) / scale - 100) < 2, "from 0 % to +100 %");
});

Deno.test("gainPlot() draws peers apart, and no group for them without any", async () => {
  const withPeers = textsOf(await gainPlot(RESULTS));
  assert.ok(withPeers.includes("peers") && withPeers.includes("torch single"));
  const without = await gainPlot(ROUND);
  assert.ok(!textsOf(without).includes("peers"));
  assert.equal(blocksOf(without, COLOURS.orange).length, 0);
});

Deno.test("gainPlot() draws data parallel training by how it adds up, beside its published gain", async () => {
  const svg = await gainPlot({ ...RESULTS, resnet50: undefined, unet: UNET });
  const texts = textsOf(svg);
  assert.ok(texts.some((text) => text.startsWith("U-Net: gain in speed against single")));
  const place = (text: string) => texts.indexOf(text);
  for (const text of ["data parallel", "model parallel", "pipeline", "peers"]) {
    assert.ok(place(text) >= 0, text);
  }
  assert.ok(place("ring") >= 0 && texts.includes("parameter") && texts.includes("best cut"), texts.join());
  const scale = blocksOf(svg, COLOURS.blue)[0]!.height / UNET.dataParallel!.ring!.gainPercent;
  const published = blocksOf(svg, PUBLISHED_FILL).map(({ height }) => Math.round(height / scale));
  assert.deepEqual(published, [30, 4]);
});
