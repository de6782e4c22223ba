/** The terminal's table. @module */
// deno-lint-ignore-file no-control-regex
import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";
import { resultsTable } from "../../bench/report/table.ts";
import { RESULTS, strategy } from "./fixtures.ts";

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
