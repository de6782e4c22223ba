import assert from "node:assert/strict";
import { convolutionShapes, flopsOf, PARTS } from "../../bench/convolutions/shapes.ts";
import { convolutionTable, type ConvolutionTiming } from "../../bench/convolutions/table.ts";
import { measureConvolutions } from "../../bench/convolutions/wasm.ts";
import { createProgress } from "../../cli/progress.ts";
import { bindToCores } from "../../runtime/machine/affinity.ts";
import { allowedCores } from "../../runtime/machine/machine.ts";

Deno.test("ResNet50's convolutions are 53, of 0.66 GFLOP a sample of 64x64 pixels", () => {
  const shapes = convolutionShapes({ model: "resnet50", size: 64, batch: 1 });
  assert.equal(shapes.reduce((sum, { count }) => sum + count, 0), 53);
  const flops = shapes.reduce((sum, { info, count }) => sum + count * flopsOf(info), 0);
  assert.ok(Math.abs(flops / 1e9 - 0.66) < 0.03, `${flops}`);
});

Deno.test("the U-Net's convolutions are 47, over what is concatenated too", () => {
  const shapes = convolutionShapes({ model: "unet", size: 64, batch: 1 });
  assert.equal(shapes.reduce((sum, { count }) => sum + count, 0), 36 + 10 + 1);
  const of = shapes.find(({ info }) => info.inChannels === 192)!;
  assert.deepEqual([of.info.outShape, of.count], [[1, 16, 16, 64], 1]); // decoder2: 128 channels and 64 beside
});

Deno.test("the table has the choice in brackets, its speed, and sums of the ways that are everywhere", () => {
  const timings: ConvolutionTiming[] = [
    { shape: "a", count: 2, part: "forward", flops: 2e6, ms: { stock: 4, own: 1 }, chosen: "own" },
    { shape: "b", count: 1, part: "filterGradient", flops: 4e6, ms: { own: 3 }, chosen: "own" },
  ];
  const lines = convolutionTable(timings).split("\n");
  assert.match(lines[0]!, /^a +x2 +forward +2\.0 GFLOP\/s +stock 4\.00 +\[own 1\.00\]$/);
  assert.match(lines[1]!, /^b +x1 +filterGradient +1\.3 GFLOP\/s +\[own 3\.00\]$/);
  assert.equal(lines.at(-2), "of the parts that run as stock: stock 8, as chosen 2");
  assert.match(lines.at(-3)!, /all parts: own 5, as chosen 5, best of each 5$/);
  assert.equal(lines.at(-1), "as chosen: 1.6 GFLOP/s");
});

Deno.test("every convolution is measured on the engine wasm in every way that can run it", async () => {
  using progress = createProgress({
    stream: { isTerminal: () => false, writeSync: (bytes) => bytes.length },
  });
  const cores = allowedCores();
  const options = { model: "resnet50", size: 32, batch: 1 } as const;
  const timings = await measureConvolutions(options, progress);
  assert.equal(timings.length, PARTS.length * convolutionShapes(options).length);
  bindToCores(cores); // it bound this thread to one, which other tests may come to run on
  assert.deepEqual(allowedCores(), cores);
  for (const { part, ms, chosen } of timings) {
    const ways = part === "filterGradient" ? ["composed", "own"] : ["stock", "composed", "own"];
    assert.deepEqual(Object.keys(ms), ways, part);
    assert.ok(Object.values(ms).every((t) => t! > 0));
    assert.equal(chosen, "own");
  }
});
