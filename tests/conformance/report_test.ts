/** The conformance report: what is counted, and how it reads. */
import assert from "node:assert/strict";
import { FAMILY_NAMES, familyOf } from "../../conformance/report/families.ts";
import { familyRows } from "../../conformance/report/rows.ts";
import { familyTable, faults, kernelSummary } from "../../conformance/report/text.ts";
import { kernel, spec, verdictOf } from "./fixtures.ts";

Deno.test("specs belong to the family of their op", () => {
  const families: Record<string, string> = {
    "conv2d": "convolution",
    "fused depthwiseConv2D": "convolution",
    "conv2dTranspose": "convolution",
    "maxPoolBackprop": "pooling",
    "pool": "pooling",
    "fused matmul": "matrix products",
    "relu6": "activations",
    "sum": "reductions",
    "gatherND": "gather and scatter",
    "sparseSegmentSum": "gather and scatter",
    "resizeBilinear gradients": "resizing and images",
    "2D RFFT": "signal and complex",
    "AdamOptimizer": "losses and optimizers",
    "huberLoss": "losses and optimizers",
    "stridedSlice": "shapes and slices",
    "slice2d": "shapes and slices",
    "greaterEqual": "elementwise",
    "add": "elementwise",
    "square": "elementwise",
    "tensor.toString": "tensors and engine",
  };
  for (const [subject, family] of Object.entries(families)) {
    assert.equal(familyOf({ subject, onBackend: true }), family, subject);
    assert.ok(FAMILY_NAMES.includes(family), family);
  }
  assert.equal(familyOf({ subject: "conv_util computeConv2DInfo", onBackend: false }), "without a backend");
});

Deno.test("beside tfjs-node, specs that it leaves out are counted as gained or left out", () => {
  const specs = [
    spec("conv2d a"),
    spec("conv2d b", { status: "failed" }),
    spec("conv2d c", { status: "failed" }),
    spec("conv2d d", { leftOutByNode: true }),
    spec("conv2d e", { leftOutByNode: true, status: "failed" }),
    spec("conv2d f", { status: "pending" }),
    spec("add a"),
  ];
  const verdict = verdictOf(specs, { exceptions: { specs: [{ specs: "conv2d b", reason: "It is so." }] } });
  assert.deepEqual(familyRows({ specs, verdict, besideNode: true }), [
    { family: "convolution", specs: 3, passed: 1, excepted: 1, failed: 1, gained: 1, leftOut: 1 },
    { family: "elementwise", specs: 1, passed: 1, excepted: 0, failed: 0, gained: 0, leftOut: 0 },
    { family: "all", specs: 4, passed: 2, excepted: 1, failed: 1, gained: 1, leftOut: 1 },
  ]);
});

Deno.test("beside stock, specs are lost, gained, or the same", () => {
  const specs = [
    spec("add a"),
    spec("add b", { status: "failed" }),
    spec("add c"),
    spec("add d", { status: "failed" }),
  ];
  const stock = [
    spec("add a"),
    spec("add b"),
    spec("add c", { status: "failed" }),
    spec("add d", { status: "failed" }),
  ];
  const [row] = familyRows({ specs, verdict: verdictOf(specs), besideNode: false, stock });
  assert.deepEqual(row, {
    family: "elementwise",
    specs: 4,
    passed: 2,
    excepted: 0,
    failed: 2,
    gained: 1,
    leftOut: 0,
    stock: 2,
    lost: 1,
  });
});

Deno.test("the table has a line per family, and columns for what stands beside", () => {
  const specs = [spec("add a"), spec("conv2d a", { status: "failed" })];
  const rows = familyRows({ specs, verdict: verdictOf(specs), besideNode: false, stock: specs });
  const lines = familyTable(rows, "stock").split("\n").map((line) => line.split(/ {2,}/));
  assert.deepEqual(lines, [
    ["family", "specs", "passed", "excepted", "failed", "stock passes", "lost", "gained"],
    ["convolution", "1", "0", "0", "1", "0", "0", "0"],
    ["elementwise", "1", "1", "0", "0", "1", "0", "0"],
    ["all", "2", "1", "0", "1", "1", "0", "0"],
  ]);
  assert.match(familyTable(rows, "node"), /gained +left out$/m);
  assert.doesNotMatch(familyTable(rows, "nothing"), /gained/);
});

Deno.test("captured calls are summed up, with the reasons of those that cannot be captured", () => {
  const kernels = [
    kernel("Add", { compared: 3, identical: 2, close: 1 }),
    kernel("Sum", { different: ["Sum gives 2"] }),
    kernel("Unique", { compared: 0, identical: 0, uncapturable: { "reads values": 4 } }),
  ];
  assert.equal(
    kernelSummary(kernels),
    "Captured: 5 calls of 3 kernels compared; 4 identical, 1 within 1e-5, 1 different; 4 cannot be captured:\n" +
      "  Unique: 4 x reads values",
  );
});

Deno.test("every fault is named, with its message on one line and not without end", () => {
  const long = spec("add long", { status: "failed", failures: [`Arrays\ndiffer: ${"1,".repeat(400)}`] });
  const verdict = verdictOf([long], {
    kernels: [kernel("Sum", { different: ["Sum(x) gives 2"] })],
    exceptions: { specs: [{ specs: "gone", reason: "" }] },
  });
  const lines = faults(verdict).split("\n");
  assert.equal(lines.length, 4);
  assert.equal(lines[0], "FAILED add long");
  assert.match(lines[1]!, /^ {4}Arrays differ: (1,)+1?…$/);
  assert.ok(lines[1]!.length < 320);
  assert.equal(lines[2], "FAILED captured: Sum(x) gives 2");
  assert.match(lines[3]!, /^FAILED exceptions.ts: No spec is called gone/);
  assert.equal(faults(verdictOf([spec("add a")])), "");
});
