/** Tests of samples that are kept. */
import assert from "node:assert/strict";
import { inMemory } from "../../../runtime/data/in_memory.ts";
import type { Samples } from "../../../runtime/data/samples.ts";

Deno.test("inMemory() reads each sample once, and gives it as it was", async () => {
  const reads: number[] = [];
  const made: Samples = {
    length: 5,
    input: { shape: [2, 2], dtype: "float32" },
    target: { shape: [1], dtype: "float32" },
    classes: ["a"],
    async read(index, input, target) {
      await Promise.resolve();
      reads.push(index);
      input.fill(index);
      target.fill(-index);
    },
  };
  const kept = await inMemory(made);
  assert.deepEqual(reads, [0, 1, 2, 3, 4]);
  for (const index of [3, 0, 3]) {
    const [input, target] = [new Float32Array(4), new Float32Array(1)];
    await kept.read(index, input, target);
    assert.deepEqual([[...input], [...target]], [new Array(4).fill(index), [-index]]);
    input.fill(9); // the caller's own
  }
  assert.equal(reads.length, 5);
  assert.deepEqual([kept.length, kept.input, kept.target, kept.classes], [5, made.input, made.target, ["a"]]);
  for (const index of [-1, 5, NaN]) {
    assert.throws(() => kept.read(index, new Float32Array(4), new Float32Array(1)), {
      name: "RangeError",
      message: `Cannot read sample ${index}: expected 0 to 4`,
    });
  }
});
