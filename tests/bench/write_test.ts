/** The files of a report. @module */
import assert from "node:assert/strict";
import { join } from "node:path";
import { checkTorch } from "../../bench/peers/torch.ts";
import { checkPlaces, writeReport } from "../../bench/report/write.ts";
import { allreduceResults } from "./allreduce_fixture.ts";
import { EXAMPLE, RESULTS, timeline, UNET } from "./fixtures.ts";

async function within(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await work(directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

const namesIn = (directory: string) => [...Deno.readDirSync(directory)].map((entry) => entry.name).sort();

Deno.test("writeReport() writes the results, the page and a file a plot, and nothing else", () =>
  within(async (directory) => {
    const into = join(directory, "new", "report");
    const paths = await writeReport(
      RESULTS,
      { timelines: { resnet50: [timeline("1f1b"), timeline("zero bubble/2")] } },
      into,
    );
    const names = ["gain.svg", "report.html", "results.json", "rounds.svg"];
    assert.deepEqual(namesIn(into), [...names, "timeline-1f1b.svg", "timeline-zero-bubble-2.svg"].sort());
    assert.deepEqual([paths.json, paths.html], [join(into, "results.json"), join(into, "report.html")]);
    assert.deepEqual(paths.plots.map((path) => Deno.statSync(path).isFile), [true, true, true, true]);
  }));

Deno.test("writeReport() writes results.json so that it reads back equal, in its published shape", () =>
  within(async (directory) => {
    const { json } = await writeReport(RESULTS, {}, directory);
    const text = await Deno.readTextFile(json);
    assert.deepEqual(JSON.parse(text), RESULTS);
    const read = JSON.parse(text);
    assert.deepEqual(Object.keys(read), ["machine", "engine", "date", "resnet50"]);
    assert.deepEqual(Object.keys(read.resnet50), [
      "settings",
      "single",
      "modelParallel",
      "pipeline",
      "peers",
    ]);
    assert.deepEqual(Object.keys(read.resnet50.pipeline), ["gpipe", "1f1b", "interleaved", "zero-bubble"]);
    assert.equal(typeof read.resnet50.pipeline.gpipe.gainPercent, "number");
  }));

Deno.test("writeReport() draws sums between workers twice: as workers grow, and as sums grow", () =>
  within(async (directory) => {
    const { machine, engine, date } = RESULTS;
    await writeReport({ machine, engine, date, allreduce: allreduceResults() }, {}, directory);
    assert.deepEqual(namesIn(directory), [
      "allreduce-sizes.svg",
      "allreduce-workers.svg",
      "report.html",
      "results.json",
    ]);
    const read = JSON.parse(await Deno.readTextFile(join(directory, "results.json")));
    assert.deepEqual(Object.keys(read.allreduce), ["settings", "cases", "skipped"]);
    assert.deepEqual(read.allreduce, allreduceResults());
  }));

Deno.test("writeReport() writes a copy of the JSON where it is told to", () =>
  within(async (directory) => {
    const path = join(directory, "elsewhere", "mine.json");
    const { json } = await writeReport(RESULTS, {}, join(directory, "report"), path);
    assert.equal(json, join(directory, "report", "results.json"));
    for (const file of [json, path]) {
      assert.deepEqual(JSON.parse(await Deno.readTextFile(file)), RESULTS);
    }
  }));

Deno.test("checkPlaces() refuses, before any work, where nothing can be written, and leaves nothing behind", () =>
  within(async (directory) => {
    const file = join(directory, "file");
    await Deno.writeTextFile(file, "");
    const under = join(file, "x");
    await assert.rejects(
      checkPlaces(under, undefined),
      /^Error: Cannot write to --output .*x: Not a directory.*; give a/,
    );
    const [report, folder] = ["report", "folder"].map((name) => join(directory, name));
    await Deno.mkdir(folder!);
    await assert.rejects(
      checkPlaces(report!, folder),
      /^Error: Cannot write to --json .*folder: it is a folder; give a/,
    );
    await checkPlaces(report!, join(folder!, "new", "results.json"));
    assert.deepEqual([namesIn(report!), namesIn(join(folder!, "new"))], [[], []]);
  }));

Deno.test("checkTorch() refuses a Python that is not there, or has no torch", async () => {
  await assert.rejects(
    checkTorch("/nowhere/python"),
    /^Error: Cannot use --torch \/nowhere\/python: .*; give the path/,
  );
  await assert.rejects(
    checkTorch(Deno.execPath()),
    /: it has no torch; give the path of a Python with torch/,
  );
});

Deno.test("writeReport() puts the plots into the page, and a background behind those in files", () =>
  within(async (directory) => {
    const { html, plots } = await writeReport(
      RESULTS,
      { timelines: { resnet50: [timeline("1f1b")] } },
      directory,
    );
    const page = await Deno.readTextFile(html);
    assert.equal(page.match(/<svg /g)!.length, 3);
    assert.match(page, /1f1b: one step on 2 devices/);
    assert.doesNotMatch(page, /class="paper"/);
    for (const path of plots) {
      assert.match(await Deno.readTextFile(path), /^<svg [^>]*><style>.*class="paper"/);
    }
  }));

Deno.test("writeReport() leaves no part of a file that it could not write", () =>
  within(async (directory) => {
    const occupied = join(directory, "results.json");
    await Deno.mkdir(join(occupied, "full"), { recursive: true });
    await assert.rejects(writeReport(RESULTS, {}, directory));
    assert.deepEqual(namesIn(directory), ["results.json"]);
  }));

Deno.test("writeReport() reports a run that measured nothing", () =>
  within(async (directory) => {
    const { html, plots } = await writeReport({ ...RESULTS, resnet50: undefined }, {}, directory);
    assert.deepEqual(plots, []);
    assert.match(await Deno.readTextFile(html), /Nothing was measured/);
  }));

Deno.test("writeReport() draws no comparison of one round of one strategy", () =>
  within(async (directory) => {
    const { settings, single } = RESULTS.resnet50!;
    const resnet50 = { settings, single: { ...single!, rounds: [0.8] } };
    const { plots } = await writeReport({ ...RESULTS, resnet50 }, {}, directory);
    assert.deepEqual(plots, []);
  }));

Deno.test("writeReport() writes the U-Net comparison beside ResNet50's, with its table of cuts", () =>
  within(async (directory) => {
    const results = { ...RESULTS, unet: UNET };
    const timelines = { resnet50: [timeline("1f1b")], unet: [timeline("1f1b")] };
    const { csv, html } = await writeReport(results, { timelines, examples: [EXAMPLE] }, directory);
    const plots = ["gain.svg", "rounds.svg", "timeline-1f1b.svg"];
    assert.deepEqual(
      namesIn(directory),
      [
        ...plots,
        ...plots.map((name) => `unet-${name}`),
        "unet-cuts.svg",
        "unet-cuts.csv",
        "report.html",
        "results.json",
      ].sort(),
    );
    assert.equal((await Deno.readTextFile(csv!)).split("\n").length, 1 + UNET.pipeline!.table.length + 1);
    const text = await Deno.readTextFile(join(directory, "results.json"));
    assert.deepEqual(JSON.parse(text), results);
    const read = JSON.parse(text);
    assert.deepEqual(Object.keys(read.unet), [
      "settings",
      "single",
      "dataParallel",
      "modelParallel",
      "pipeline",
      "peers",
    ]);
    assert.deepEqual(Object.keys(read.unet.dataParallel), ["ring", "parameterServer"]);
    assert.deepEqual(Object.keys(read.unet.pipeline), ["best", "table"]);
    const page = await Deno.readTextFile(html);
    const order = ["ResNet50", "U-Net", "Partitions and split sizes", "Images that were held out"].map((
      text,
    ) => page.indexOf(`>${text}<`));
    assert.deepEqual(order, order.toSorted((a, b) => a - b));
    assert.ok(order[0]! > 0);
  }));
