/** Tests of every gradient that an engine has: it is the slope of the op's values. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { gradients } from "./stock.ts";
import { BATCH_NORM } from "../../stages/layers/batch_norm_kernel.ts";
import { hasKernel } from "../../stages/tfjs.ts";
import { close } from "../tensorflow/compare.ts";
import { test } from "../tensorflow/engine.ts";
import { ARRAYS } from "./cases/arrays.ts";
import type { Cases } from "./cases/cases.ts";
import { COMPOSED } from "./cases/composed.ts";
import { ELEMENTWISE } from "./cases/elementwise.ts";
import { IMAGES } from "./cases/images.ts";
import { checkGradient, type GradientCase } from "./differences.ts";
import { ENGINES, testOn } from "./engines.ts";

const CASES: Cases = { ...ELEMENTWISE, ...ARRAYS, ...IMAGES };

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

/** Tells of all cases that fail, not of the first alone. */
function checkAll(cases: readonly GradientCase[], kernel?: string): void {
  const failures = cases.flatMap((one) => {
    try {
      tf.tidy(() => checkGradient(one, kernel));
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  if (failures.length > 0) throw new Error(`${failures.length} of ${cases.length}:\n${failures.join("\n")}`);
}

test("values are the same on both engines", async () => {
  const cases = [
    ...Object.entries(CASES).flatMap(([kernel, cases]) => cases.map((one) => [kernel, one] as const)),
    ...COMPOSED.map((one) => ["", one] as const),
  ];
  const values = async (name: string) => {
    await tf.setBackend(name);
    return cases.map(([kernel, { inputs, op }]) => {
      if (kernel === BATCH_NORM && !hasKernel(kernel)) return;
      return tf.tidy(() => {
        const y = op(...inputs.map(({ values, shape }) => tf.tensor(values, [...shape])));
        return { shape: y.shape, values: Float32Array.from(y.dataSync()) };
      });
    });
  };
  const [ours, theirs] = [await values("wasm"), await values("tensorflow")];
  const failures: string[] = [];
  cases.forEach(([kernel, { name }], i) => {
    const [a, b] = [ours[i], theirs[i]!];
    if (!a) return;
    try {
      assert.deepEqual(a.shape, b.shape);
      close(a.values, b.values, 1e-5);
    } catch (error) {
      failures.push(`${kernel} ${name}: ${(error as Error).message}`);
    }
  });
  assert.deepEqual(failures, []);
});

for (const engine of ENGINES) {
  for (const [kernel, cases] of Object.entries(CASES)) {
    testOn(engine, `the gradient of ${kernel} is the slope of its values`, () => {
      if (kernel === BATCH_NORM && !hasKernel(kernel)) return; // stages normalize by ops instead
      checkAll(cases, kernel);
    });
  }
  testOn(engine, "gradients of ops that are put together are slopes", () => {
    checkAll(COMPOSED);
  });
}
