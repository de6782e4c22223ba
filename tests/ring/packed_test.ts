/** Tests of where arrays lie in one sum. */
import assert from "node:assert/strict";
import { packed } from "../../ring/packed.ts";

Deno.test("packed() begins each array on a cache line, in order and without more room than that takes", () => {
  assert.deepEqual(packed([]), { starts: [], length: 0 });
  assert.deepEqual(packed([1]), { starts: [0], length: 16 });
  assert.deepEqual(packed([16, 0, 17, 3]), { starts: [0, 16, 16, 48], length: 64 });
});
