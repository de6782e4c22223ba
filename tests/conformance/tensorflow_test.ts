/** tfjs-core's whole suite on the engine "tensorflow", and its kernel calls under capture. */
import assert from "node:assert/strict";
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { report } from "./task.ts";

const ignore = findTensorflow() === undefined;

Deno.test({
  name: `every spec that tfjs-node runs passes on tensorflow${
    ignore ? ' (no libtensorflow: "deno task setup")' : ""
  }`,
  ignore,
  async fn(t) {
    const { code, stdout, stderr, report: { families, verdict, kernels } } = await report([]);
    const all = families.at(-1)!;

    await t.step("eager", () => {
      assert.deepEqual(verdict.failed, []);
      assert.deepEqual(verdict.stale, []);
      // What the published suite has; how many pass must not shrink.
      assert.equal(all.specs, 3878);
      assert.equal(all.passed + all.excepted, 3878);
      assert.ok(all.excepted <= 5, `${all.excepted} exceptions`);
      assert.ok(all.gained >= 230, `${all.gained} gained`);
    });

    await t.step("captured", () => {
      assert.deepEqual(verdict.failedKernels, []);
      const sum = (count: (kernel: typeof kernels[number]) => number) =>
        kernels.reduce((sum, kernel) => sum + count(kernel), 0);
      const compared = sum(({ compared }) => compared);
      assert.ok(compared >= 3600, `${compared} calls compared`);
      assert.ok(sum(({ identical }) => identical) >= 0.99 * compared, "identical");
      assert.ok(kernels.length >= 160, `${kernels.length} kernels`);
    });

    await t.step("as a person reads it", () => {
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^all +3878 +\d+ +\d+ +0 /m);
      assert.match(stdout, /passed \d+ of 3878 specs/);
      assert.doesNotMatch(stdout, /FAILED/);
      assert.match(stderr, /100 % {2}done in/);
    });
  },
});
