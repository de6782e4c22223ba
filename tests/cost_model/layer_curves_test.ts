/** Layers' costs between, below and beyond what was measured. @module */
import assert from "node:assert/strict";
import { LayerCurves } from "../../runtime/cost_model/layer_curves.ts";

const forward = (curves: LayerCurves, samples: number) => curves.at("a", samples).F;
const curvesOf = (...points: [samples: number, F: number][]) =>
  new LayerCurves(points.map(([samples, F]) => ({ samples, costs: { a: { F, B: 2 * F, W: 3 * F } } })));

Deno.test("LayerCurves are linear between measurements, whatever the order in which they are given", () => {
  const curves = curvesOf([16, 34], [1, 4], [4, 10]);
  assert.deepEqual([1, 2, 4, 10, 16].map((n) => forward(curves, n)), [4, 6, 10, 22, 34]);
  assert.deepEqual(curves.at("a", 2), { F: 6, B: 12, W: 18 });
});

Deno.test("LayerCurves go on as the last two measurements do", () => {
  assert.equal(forward(curvesOf([1, 4], [4, 10], [16, 22]), 32), 38);
  assert.equal(forward(curvesOf([4, 10], [8, 14]), 2), 8); // not 5: weights are read whatever the samples
  assert.equal(forward(curvesOf([4, 4], [8, 12]), 2), 2); // in proportion, where the line would say 0
});

Deno.test("LayerCurves of one measurement are in proportion", () => {
  assert.deepEqual([1, 4, 8].map((n) => forward(curvesOf([4, 10]), n)), [2.5, 10, 20]);
});

Deno.test("LayerCurves never fall: more samples that seem faster are noise", () => {
  const curves = curvesOf([1, 4], [4, 3], [16, 20]);
  const values = Array.from({ length: 32 }, (_, i) => forward(curves, i + 1));
  assert.ok(values.every((value, i) => value >= (values[i - 1] ?? 0)), String(values));
  assert.equal(values[3], 4);
});

Deno.test("LayerCurves of a layer that was not measured are nothing", () => {
  assert.deepEqual(curvesOf([1, 4], [4, 10]).at("b", 2), { F: 0, B: 0, W: 0 });
});

Deno.test("LayerCurves need a measurement", () => {
  assert.throws(() => new LayerCurves([]), /^RangeError: .*nothing was measured$/);
});
