/** What makes a conformance run fail: every failure without an exception, every exception without a failure. */
import assert from "node:assert/strict";
import { kernel, spec, verdictOf } from "./fixtures.ts";

const reason = "It is so.";
const failing = spec("conv2d fails", { status: "failed" });

Deno.test("a run in which all specs pass passes, whatever the suite leaves out itself", () => {
  assert.equal(verdictOf([spec("add a"), spec("add b", { status: "pending" })]).passed, true);
});

Deno.test("a failed spec fails the run", () => {
  const { passed, failed } = verdictOf([spec("add a"), failing]);
  assert.deepEqual([passed, failed], [false, [failing]]);
});

Deno.test("a failed spec with an exception does not, by name or by pattern", () => {
  for (const specs of ["conv2d fails", /^conv2d /]) {
    const { passed, excepted, failed } = verdictOf([failing], { exceptions: { specs: [{ specs, reason }] } });
    assert.deepEqual({ passed, excepted, failed }, {
      passed: true,
      excepted: [{ spec: failing, reason }],
      failed: [],
    });
  }
});

Deno.test("an exception by name is for that spec alone", () => {
  const other = spec("conv2d fails too", { status: "failed" });
  const exceptions = { specs: [{ specs: "conv2d fails", reason }] };
  assert.deepEqual(verdictOf([failing, other], { exceptions }).failed, [other]);
});

Deno.test("an exception whose spec passes fails the run, and so does one of several that passes", () => {
  const exceptions = { specs: [{ specs: /^conv2d /, reason }] };
  const { passed, stale } = verdictOf([failing, spec("conv2d works")], { exceptions });
  assert.equal(passed, false);
  assert.deepEqual(stale, ['Spec "conv2d works" passes, though an exception says that it fails']);
});

Deno.test("an exception that no spec answers to fails a complete run, and no other", () => {
  const exceptions = { specs: [{ specs: "conv2d gone", reason }] };
  assert.deepEqual(verdictOf([spec("add a")], { exceptions }).stale, [
    "No spec is called conv2d gone, though there is an exception for it",
  ]);
  assert.equal(verdictOf([spec("add a")], { exceptions, complete: false }).passed, true);
});

Deno.test("specs that tfjs-node leaves out fail a run only where they count", () => {
  const left = spec("raggedRange a", { status: "failed", leftOutByNode: true });
  const { passed, leftOut } = verdictOf([left]);
  assert.deepEqual([passed, leftOut], [true, [left]]);
  assert.deepEqual(verdictOf([left], { countLeftOut: true }).failed, [left]);
});

Deno.test("specs may fail for want of a kernel that an exception names, and by nothing else", () => {
  const message = "Error: Kernel 'Complex' not registered for backend 'wasm'";
  const exceptions = { lacking: [{ kernel: "Complex", reason }] };
  const lacking = spec("fft a", { status: "failed", failures: [message] });
  const wrong = spec("fft b", { status: "failed", failures: [message, "Error: Arrays differ"] });
  const other = spec("fft c", { status: "failed", failures: [message.replace("Complex", "FFT")] });
  const { failed, excepted } = verdictOf([lacking, wrong, other], { exceptions });
  assert.deepEqual(failed, [wrong, other]);
  assert.deepEqual(excepted, [{ spec: lacking, reason }]);
  assert.deepEqual(verdictOf([spec("fft a")], { exceptions }).stale, [
    "No spec fails for want of kernel Complex, though there is an exception for it",
  ]);
  assert.equal(verdictOf([spec("fft a")], { exceptions, complete: false }).passed, true);
});

Deno.test("a kernel that gives something else when it is captured fails the run", () => {
  const kernels = [kernel("Add"), kernel("Sum", { different: ["Sum(x) gives 2"] })];
  const { passed, failedKernels } = verdictOf([], { kernels });
  assert.deepEqual([passed, failedKernels], [false, ["Sum(x) gives 2"]]);
});

Deno.test("a kernel that cannot be captured fails the run unless it is an exception", () => {
  const kernels = [kernel("Unique", { uncapturable: { "reads values": 3 } })];
  assert.deepEqual(verdictOf([], { kernels }).failedKernels, [
    "Unique: 3 calls cannot be captured: reads values",
  ]);
  const exceptions = { uncapturable: [{ kernel: "Unique", reason }] };
  assert.equal(verdictOf([], { kernels, exceptions }).passed, true);
});

Deno.test("a kernel's exception that no longer holds fails the run", () => {
  const exceptions = { uncapturable: [{ kernel: "Unique", reason }] };
  assert.deepEqual(verdictOf([], { kernels: [kernel("Unique")], exceptions }).stale, [
    "Kernel Unique gives the same when it is captured, though an exception says that it does not",
  ]);
  assert.deepEqual(verdictOf([], { kernels: [kernel("Add")], exceptions }).stale, [
    "Kernel Unique was not called, though there is an exception for it",
  ]);
  assert.equal(verdictOf([], { kernels: [kernel("Add")], exceptions, complete: false }).passed, true);
});
