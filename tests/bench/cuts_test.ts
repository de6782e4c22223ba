/** Partitions and split sizes: the map of colours, and the table as CSV. @module */
import assert from "node:assert/strict";
import { cutsCsv, cutsTable } from "../../bench/report/cuts.ts";
import { heatMap } from "../../bench/report/heat_map.ts";
import { UNET } from "./fixtures.ts";
import { placeOf, textsOf } from "./svg.ts";

const { table } = UNET.pipeline!;

Deno.test("cutsCsv() has a line a cut, empty where nothing was measured", () => {
  const lines = cutsCsv(table).split("\n");
  assert.equal(lines[0], "partition,splitSize,secondsPerStep,predictedSeconds,errorPercent,speedup,rounds");
  const [partition, splitSize, seconds, predicted, error, speedup, rounds] = lines[5]!.split(",");
  assert.deepEqual([partition, splitSize, seconds, predicted], ["decoder4", "4", "0.6", "0.61"]);
  assert.ok(Math.abs(Number(error) - 100 / 60) < 1e-6, error);
  assert.deepEqual([speedup, rounds], ["1.5", "0.6 0.6"]);
  assert.equal(lines[6], "decoder4,16,,0.93,,,");
});

Deno.test("cutsCsv() quotes what needs it", () => {
  assert.match(cutsCsv([{ partition: ['a,"b"', "c"], splitSize: 1 }]), /\n"a,""b"" \| c",1,,,,,\n$/);
});

Deno.test("heatMap() places a cell where its partition and its split size meet, darker where it is faster", async () => {
  const svg = await heatMap(cutsTable(table), "U-Net");
  const texts = textsOf(svg);
  for (const text of ["encoder3", "decoder4", "0.600 (0.610, +2 %)", "1.20 (1.32, +10 %)"]) {
    assert.ok(texts.includes(text), text);
  }
  assert.ok(!texts.includes("0.930"), "what was not measured has no cell in a measured map");
  const best = placeOf(svg, "0.600 (0.610, +2 %)");
  assert.ok(Math.abs(best.x - placeOf(svg, "4").x) < 1, "below its split size");
  assert.ok(Math.abs(best.y - placeOf(svg, "decoder4").y) < 1, "beside its partition");
  const fills = [...svg.matchAll(/<path d="[^"]*" fill="rgb\((\d+),(\d+),(\d+)\)"/g)]
    .map((match) => match.slice(1).reduce((sum, value) => sum + Number(value), 0));
  // encoder3 at 1, 4 and 16, decoder4 at 1 and 4: 1.2, 0.618, 0.9, 1.1 and 0.6 s.
  assert.equal(fills.length, 5);
  const [slowest, second, middle, slow, fastest] = fills as [number, number, number, number, number];
  assert.ok(fastest < second && second < middle && middle < slow && slow < slowest, fills.join());
});

Deno.test("heatMap() draws predictions where nothing was measured", async () => {
  const predictions = table.map(({ partition, splitSize, predictedSeconds }) => ({
    partition,
    splitSize,
    predictedSeconds: predictedSeconds!,
  }));
  const texts = textsOf(await heatMap(cutsTable(predictions), "U-Net"));
  assert.ok(texts.includes("0.605") && texts.includes("0.930"));
  assert.ok(texts.some((text) => text.startsWith("predicted seconds per step")));
});
