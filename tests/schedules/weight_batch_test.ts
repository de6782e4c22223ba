/** Tests of how many micro-batches one W takes. @module */
import assert from "node:assert/strict";
import { simulate } from "../../runtime/schedules/simulate.ts";
import { type BatchedTimes, chooseWeightBatch, timesFor } from "../../runtime/schedules/weight_batch.ts";
import { zeroBubble } from "../../runtime/schedules/zero_bubble.ts";

const EVEN = { F: 1, B: 1, W: 1 };

function makespan(
  m: number,
  times: readonly BatchedTimes[],
  weightBatch: readonly number[],
  maxInFlight?: number,
) {
  const now = timesFor(times, weightBatch);
  const options = { times: now, weightBatch, ...(maxInFlight === undefined ? {} : { maxInFlight }) };
  return simulate(zeroBubble(m, options), { times: now }).makespan;
}

Deno.test("timesFor() takes the W that was measured for the batch, or the plain one", () => {
  const times: BatchedTimes[] = [{ ...EVEN, batched: { 2: 0.5, 4: 0.25 } }, { ...EVEN, W: 3, batched: {} }];
  assert.deepEqual(timesFor(times, [4, 2]).map(({ W }) => W), [0.25, 3]);
  assert.deepEqual(timesFor(times, [1, 1]).map(({ F, B, W }) => [F, B, W]), [[1, 1, 1], [1, 1, 3]]);
});

Deno.test("chooseWeightBatch() takes the batch that pays most, stage by stage", () => {
  const times: BatchedTimes[] = [{ ...EVEN, batched: { 2: 0.6, 4: 0.95 } }, {
    ...EVEN,
    batched: { 2: 0.95, 4: 0.5 },
  }];
  assert.deepEqual(chooseWeightBatch(8, times, undefined), [2, 4]);
  assert.ok(makespan(8, times, [2, 4]) < 0.85 * makespan(8, times, [1, 1]));
});

Deno.test("chooseWeightBatch() leaves a batch that gains less than 2 % of the step", () => {
  assert.deepEqual(chooseWeightBatch(8, [{ ...EVEN, batched: { 4: 0.96 } }], undefined), [1]); // 1.3 %
  assert.deepEqual(chooseWeightBatch(8, [{ ...EVEN, batched: { 4: 0.9 } }], undefined), [4]); // 3.3 %
});

Deno.test("chooseWeightBatch() leaves a batch that is faster by itself and comes too late", () => {
  // Stage 0 ends with B of the last micro-batch; a W of all eight can only start then.
  const times: BatchedTimes[] = [{ ...EVEN, batched: { 8: 0.95 } }, { ...EVEN, batched: {} }];
  assert.deepEqual(chooseWeightBatch(8, times, undefined), [1, 1]);
  assert.ok(makespan(8, times, [8, 1]) >= makespan(8, times, [1, 1]));
});

Deno.test("chooseWeightBatch() keeps one where nothing was measured", () => {
  assert.deepEqual(chooseWeightBatch(4, [{ ...EVEN, batched: {} }, { ...EVEN, batched: {} }], 2), [1, 1]);
});

Deno.test("chooseWeightBatch() chooses for the bound in flight that will be used", () => {
  const times: BatchedTimes[] = [{ ...EVEN, batched: {} }, { F: 0.5, B: 1, W: 1.5, batched: { 2: 1.3 } }];
  for (const [bound, batch] of [[1, 1], [2, 1], [4, 2], [undefined, 2]] as const) {
    assert.deepEqual(chooseWeightBatch(8, times, bound), [1, batch]);
    const [own, other] = [makespan(8, times, [1, batch], bound), makespan(8, times, [1, 3 - batch], bound)];
    if (bound !== 1) assert.ok(batch === 2 ? own < 0.97 * other : own * 0.97 <= other);
  }
});

Deno.test("chooseWeightBatch() keeps to the bound in flight, however fast a larger batch is", () => {
  const times: BatchedTimes[] = [{ ...EVEN, batched: { 2: 0.8, 4: 0.1 } }];
  assert.deepEqual([1, 2, 3, 4, undefined].map((bound) => chooseWeightBatch(8, times, bound)), [
    [1],
    [2],
    [2],
    [4],
    [4],
  ]);
});
