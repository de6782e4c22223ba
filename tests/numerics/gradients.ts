/** Tests of the cases of gradients: they are slopes of the op's values, and these the same on both engines. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
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
import { type EngineName, testOn } from "./engines.ts";

/** All of them, but those of no kernel's own. */
export const CASES: Cases = { ...ELEMENTWISE, ...ARRAYS, ...IMAGES };

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

/** Declares the test that both engines compute the same. */
export function testValues(): void {
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
}

/** Declares a test for each kernel's gradient on an engine. */
export function testGradients(engine: EngineName): void {
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
