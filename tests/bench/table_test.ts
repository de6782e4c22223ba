/** The terminal's table. @module */
// deno-lint-ignore-file no-control-regex
import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";
import { resultsTable } from "../../bench/report/table.ts";
import type { CutResult } from "../../bench/results.ts";
import { RESULTS, strategy, UNET } from "./fixtures.ts";

const plain = (columns = 120) => resultsTable(RESULTS, { colour: false, columns });
const rowOf = (table: string, name: string) => table.split("\n").find((line) => line.startsWith(name)) ?? "";

Deno.test("resultsTable() lists sequential, model parallel, pipelines, then peers", () => {
  const names = [
    "sequential",
    "model parallel",
    "pipeline gpipe",
    "pipeline 1f1b",
    "pipeline interleaved",
    "pipeline zero-bubble",
    "torch single",
    "torch pipeline",
  ];
  const lines = plain().split("\n");
  const places = names.map((name) => lines.findIndex((line) => line.startsWith(name)));
  assert.ok(places.every((place, i) => place > (places[i - 1] ?? 0)), String(places));
});

Deno.test("resultsTable() writes every figure in its unit", () => {
  const single = [1, 1.2, 0.8];
  const results = {
    ...RESULTS,
    resnet50: {
      ...RESULTS.resnet50!,
      single: strategy(single, single),
      pipeline: {
        "1f1b": strategy([0.8, 0.8, 0.5], single, {
          loss: 0.98765,
          bubbleShare: 0.1234,
          transferShare: 0.0567,
          peakMemory: 1.5e9,
          hostMsPerAction: 0.44,
          partition: ["conv3_block1_out", "conv4_block2_out"],
        }),
      },
    },
  };
  const row = rowOf(resultsTable(results, { colour: false, columns: 120 }), "pipeline 1f1b");
  assert.deepEqual(row.split(/ {2,}/), [
    "pipeline 1f1b",
    "0.800",
    "0.500–0.800",
    "40.0",
    "+50.0",
    "0.9877",
    "12.3",
    "5.7",
    "1.50",
    "0.44",
    "conv3_bloc… +1",
  ]);
});

Deno.test("resultsTable() fits 120 columns, with the whole partitions below", () => {
  const lines = plain().split("\n");
  const table = lines.slice(4, lines.lastIndexOf("", lines.length - 2));
  assert.ok(table.every((line) => line.length <= 120));
  assert.ok(lines.includes(
    "cut at conv4_block3_1_conv: model parallel, pipeline gpipe, pipeline 1f1b, pipeline zero-bubble",
  ));
});

Deno.test("resultsTable() leaves out columns on a narrow terminal, the most needed last", () => {
  const narrow = plain(80);
  assert.match(narrow, /^strategy +seconds +images +gain/m);
  assert.doesNotMatch(narrow, /^strategy.*partition/m);
  assert.match(rowOf(plain(20), "model parallel"), /^model parallel +0\.858 +37\.3 +-4\.0$/);
});

Deno.test("resultsTable() colours only where that is wanted", () => {
  const coloured = resultsTable(RESULTS, { colour: true, columns: 120 });
  assert.equal(stripVTControlCharacters(coloured), plain());
  assert.notEqual(coloured, plain());
  assert.match(rowOf(coloured, "pipeline 1f1b"), /\x1b\[32m\+52\.7/);
});

Deno.test("resultsTable() does not pass off what a peer does not measure as zero", () => {
  assert.match(rowOf(plain(), "torch pipeline"), /0\.001234 +– +– +– +– +–$/);
  assert.match(rowOf(plain(), "sequential"), /0\.001234 +0\.0 +0\.0 +2\.70/);
});

Deno.test("resultsTable() says so when nothing was measured", () => {
  assert.equal(resultsTable({ ...RESULTS, resnet50: undefined }), "Nothing was measured.\n");
});

const unetTable = (unet = UNET, colour = false) =>
  resultsTable({ ...RESULTS, resnet50: undefined, unet }, { colour, columns: 120 });

Deno.test("resultsTable() lists data parallel training between sequential and model parallel", () => {
  const { ring, parameterServer } = UNET.dataParallel!;
  const resnet50 = { ...RESULTS.resnet50!, dataParallel: { ring: ring!, parameterServer: parameterServer! } };
  const lines = resultsTable({ ...RESULTS, resnet50 }, { colour: false, columns: 120 }).split("\n");
  const at = lines.findIndex((line) => line.startsWith("sequential"));
  assert.match(lines[at + 1]!, /^data parallel ring +0\.445/);
  assert.match(lines[at + 2]!, /^data parallel parameter server +0\.484/);
  assert.match(lines[at + 3]!, /^model parallel/);
});

Deno.test("resultsTable() has every partition and split size, with the prediction and its error", () => {
  const lines = unetTable().split("\n");
  const at = lines.findIndex((line) => line.startsWith("partition"));
  const cells = (line: string) => line.split(/ {2,}/);
  assert.deepEqual(cells(lines[at]!), ["partition", "split size 1", "4", "16"]);
  assert.deepEqual(cells(lines[at + 2]!), [
    "encoder3",
    "1.20 (1.32, +10 %)",
    "0.618 (0.605, -2 %)",
    "0.900 (0.900, 0 %)",
  ]);
  assert.deepEqual(cells(lines[at + 3]!), ["decoder4", "1.10 (1.10, 0 %)", "*0.600 (0.610, +2 %)", "0.930"]);
  assert.equal(lines[at + 5], "5 of 6 cuts were measured");
  assert.equal(lines[at + 6], "* best measured: decoder4 in micro-batches of 4, 0.600 s");
  assert.equal(
    lines[at + 7],
    "best predicted: encoder3 in micro-batches of 4, measured at 0.618 s: +3.0 % against the best",
  );
  assert.equal(lines[at + 8], "the prediction's error: 2 % at the median, 10 % at most");
});

Deno.test("resultsTable() names the best predicted cut though it was not measured, and the median of two errors", () => {
  const table = UNET.pipeline!.table.map((cut, i) =>
    i === 0 || i === 4 ? cut : { ...cut, secondsPerStep: undefined, rounds: undefined }
  );
  const text = unetTable({ ...UNET, pipeline: { ...UNET.pipeline!, table: table as CutResult[] } });
  assert.match(
    text,
    /^best predicted: encoder3 in micro-batches of 4, 0\.605 s by prediction; it was not measured$/m,
  );
  assert.match(text, /^the prediction's error: 6 % at the median, 10 % at most$/m); // 10 % and 1.7 %
});

Deno.test("resultsTable() writes a loss that diverged with an exponent", () => {
  const single = strategy([1, 1], [1, 1], { loss: 1.21e20 });
  const results = { ...RESULTS, resnet50: { settings: RESULTS.resnet50!.settings, single } };
  assert.match(rowOf(resultsTable(results, { colour: false, columns: 120 }), "sequential"), / 1\.210e\+20 /);
});

Deno.test("resultsTable() writes the best cut alone in bold", () => {
  const bold = [...unetTable(UNET, true).matchAll(/\x1b\[1m([^\x1b]*)\x1b\[22m/g)].map((match) => match[1]!);
  assert.deepEqual(bold.filter((text) => /\(/.test(text)), ["*0.600 (0.610, +2 %)"]);
});

Deno.test("resultsTable() shows what was predicted where nothing was enumerated", () => {
  const table = UNET.pipeline!.table.map(({ partition, splitSize, predictedSeconds }) => ({
    partition,
    splitSize,
    predictedSeconds: predictedSeconds!,
  }));
  const text = unetTable({ ...UNET, pipeline: { ...UNET.pipeline!, table } });
  assert.match(text, /^encoder3 +1\.32 +\*0\.605 +0\.900$/m);
  assert.match(text, /none was measured\n\* best predicted: encoder3 in micro-batches of 4, 0.605 s/);
});

Deno.test("resultsTable() shows an enumeration that was broken off before any strategy", () => {
  const { settings, pipeline } = UNET;
  const text = unetTable({ settings, pipeline: { table: pipeline!.table.slice(0, 1) } });
  assert.match(text, /^encoder3 +\*1\.20/m);
  assert.doesNotMatch(text, /^strategy/m);
});

Deno.test("resultsTable() has the published second table: epoch, speedup, loss and IoU of each strategy", () => {
  const text = unetTable();
  assert.match(text, /^strategy +seconds +speedup +loss +IoU +seconds/m);
  assert.match(rowOf(text, "single"), /^single +49\.4 +1 +0\.400 +0\.710 +0\.823/);
  assert.match(
    rowOf(text, "data parallel ring"),
    /^data parallel ring +26\.7 +1\.85 +0\.400 +0\.700 +0\.445/,
  );
  assert.match(rowOf(text, "pipeline best cut"), /^pipeline best cut +32\.9 +1\.50 +0\.400 +0\.680/);
  assert.match(rowOf(text, "torch single"), /^torch single +60\.0 +0\.833 +– +–/);
  assert.match(text, /an epoch: 960 images in 60 steps$/m);
  assert.ok(
    text.split("\n").filter((line) => /^(single|model|data|pipe)/.test(line)).every((l) => l.length <= 120),
  );
});
