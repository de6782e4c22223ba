/** Samples held out and samples that make whole batches. @module */
import assert from "node:assert/strict";
import { holdOut, wholeBatches } from "../../bench/unet_data.ts";
import type { Samples } from "../../runtime/data/samples.ts";

/** Sample `i` is the number `i`, its target the epoch. */
function numbers(length: number): Samples {
  const spec = { shape: [1], dtype: "float32" } as const;
  return {
    length,
    input: spec,
    target: spec,
    read(index, input, target, epoch = 0) {
      input[0] = index;
      target[0] = epoch;
    },
  };
}

function valuesOf(samples: Samples, epoch?: number): number[] {
  const [input, target] = [new Float32Array(1), new Float32Array(1)];
  return Array.from({ length: samples.length }, (_, i) => {
    samples.read(i, input, target, epoch);
    return input[0]! + target[0]! * 100;
  });
}

Deno.test("holdOut() holds every fifth sample out and trains on the others", () => {
  const { train, heldOut } = holdOut(numbers(12), 4, "data");
  assert.deepEqual(valuesOf(train), [0, 1, 2, 3, 5, 6, 7, 8, 10, 11]);
  assert.deepEqual(valuesOf(heldOut), [4, 9]);
  assert.deepEqual(valuesOf(heldOut, 3), [304, 309]);
});

Deno.test("holdOut() refuses too few samples for a batch, and says how many it takes", () => {
  assert.throws(
    () => holdOut(numbers(8), 8, "pictures"),
    /^RangeError: Cannot train on the 8 images of pictures: expected at least 9, for one in 5/,
  );
  assert.equal(holdOut(numbers(9), 8, "pictures").train.length, 8);
  assert.throws(() => holdOut(numbers(4), 1, "pictures"), /expected at least 5/);
});

Deno.test("wholeBatches() leaves out what would make a smaller batch", () => {
  assert.deepEqual(valuesOf(wholeBatches(numbers(11), 4)), [0, 1, 2, 3, 4, 5, 6, 7]);
  const even = numbers(8);
  assert.equal(wholeBatches(even, 4), even);
});
