/** Tests of every gradient that an engine has: it is the slope of the op's values. @module */
import assert from "node:assert/strict";
import { gradients } from "./stock.ts";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { ENGINES } from "./engines.ts";
import { CASES, testGradients, testValues } from "./gradients.ts";

const { kernels } = await startBackend();
assert.ok(kernels, "no SIMD");
registerLayers();

/** Registered gradients without a case, each with the reason. */
const EXEMPT: Readonly<Record<string, string>> = {
  [tf.BroadcastTo]: "no engine has the kernel: tf.broadcastTo runs Tile",
  [tf.LogSoftmax]: "no engine has the kernel: tf.logSoftmax is put together, and among those cases",
  [tf.ComplexAbs]: "of complex numbers, by which TensorFlow.js has no gradients",
};

Deno.test("every registered gradient has a case, or a reason to have none", () => {
  const known = [...Object.keys(CASES), ...Object.keys(EXEMPT)];
  assert.deepEqual([...gradients().keys()].sort(), known.sort());
  for (const [kernel, cases] of Object.entries(CASES)) assert.ok(cases.length > 0, kernel);
});

testValues();
for (const engine of ENGINES) testGradients(engine);
