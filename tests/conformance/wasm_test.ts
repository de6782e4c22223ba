/** tfjs-core's whole suite on the engine "wasm"; beside stock tfjs-backend-wasm, families that training needs. */
import assert from "node:assert/strict";
import { report } from "./task.ts";

Deno.test("no spec fails on wasm but those that stand in the exceptions", async () => {
  const { code, stderr, report: { families, verdict } } = await report(["--engine", "wasm", "--no-stock"]);
  const all = families.at(-1)!;
  assert.deepEqual(verdict.failed, []);
  assert.deepEqual(verdict.stale, []);
  assert.equal(all.specs, 4225);
  // How many pass must not shrink.
  assert.ok(all.passed >= 4042, `${all.passed} passed`);
  // Complex numbers, ragged tensors and strings; nothing that a layer needs.
  for (const family of families) {
    const { excepted, specs } = family;
    const most: Record<string, number> = { "convolution": 1, "pooling": 3, "shapes and slices": 30 };
    const free = [
      "all",
      "signal and complex",
      "gather and scatter",
      "strings",
      "elementwise",
      "tensors and engine",
    ];
    if (!free.includes(family.family)) {
      assert.ok(excepted <= (most[family.family] ?? 0), `${family.family}: ${excepted} of ${specs} excepted`);
    }
  }
  assert.equal(code, 0, stderr);
});

Deno.test("wasm loses no gradient and no pooling that stock tfjs-backend-wasm has, and gains others", async () => {
  const filters = ["gradient", "Backprop", "maxPool", "avgPool"].flatMap((part) => ["--filter", part]);
  const { code, stdout, stderr, report: { families, stock } } = await report([
    "--engine",
    "wasm",
    ...filters,
  ]);
  const all = families.at(-1)!;
  assert.ok(all.specs > 600, `${all.specs} specs`);
  assert.equal(stock!.length, all.specs + stock!.filter(({ status }) => status === "pending").length);
  assert.equal(all.lost, 0);
  assert.ok(all.gained >= 59, `${all.gained} gained`);
  // Gradients that stock cannot run at all.
  const there = stock!.filter(({ name }) =>
    /^(conv2d gradient|depthwiseConv2d gradients .*(wrt|gradient))/.test(name)
  );
  assert.ok(there.length >= 8, `${there.length} specs`);
  assert.deepEqual(new Set(there.map(({ status }) => status)), new Set(["failed"]));
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^family +specs +passed +excepted +failed +stock passes +lost +gained$/m);
});
