/** Tests of the schedules that one way of running keeps, against the rings that it was given. @module */
import assert from "node:assert/strict";
import type { MeasuredTimes } from "../../runtime/measure.ts";
import { fewestInFlight } from "../../runtime/coordinator/memory_fit.ts";
import type { LanePlan } from "../../runtime/coordinator/ready_lane.ts";
import { ReadyLane } from "../../runtime/coordinator/ready_lane.ts";
import { type Action, formatSchedule } from "../../runtime/schedules/action.ts";
import { capacitiesFor, makeSchedule } from "../../runtime/schedules/schedules.ts";
import { validate } from "../../runtime/schedules/validate.ts";
import { timesFor } from "../../runtime/schedules/weight_batch.ts";
import type { StageMemory } from "../../stages/stage_memory.ts";
import type { Workloads } from "../../runtime/coordinator/workloads.ts";

/** Stages on which a schedule of a smaller batch's own would wait for ever in the rings of the whole. */
const TIMES: readonly MeasuredTimes[] = [
  { F: 3, B: 4, W: 3, batched: { 2: 1.5 } },
  { F: 2, B: 2, W: 2, batched: {} },
];

function lane(
  options: { schedule?: string; weightBatch?: number | "auto"; maxInFlight?: number } = {},
  memory?: LanePlan["memory"],
): ReadyLane {
  const plan = {
    shape: { mode: "train", batchSize: 22, inputs: [], targets: [] },
    microBatchSize: 2,
    shareSize: 2,
    microBatches: 11,
    stages: [
      { index: 0, outputs: [{ to: 1, needsGradient: true }] },
      { index: 1, outputs: [] },
    ],
    times: TIMES,
    memory,
  } as unknown as LanePlan;
  const defaults = { schedule: "zero-bubble", weightBatch: "auto", maxInFlight: undefined, replicas: 1 };
  return new ReadyLane(plan, { options: { ...defaults, ...options } } as unknown as Workloads);
}

Deno.test("every smaller batch's schedule fits the rings that were made for the largest", () => {
  for (const weightBatch of ["auto", 1, 2] as const) {
    const ready = lane({ weightBatch });
    const capacities = ready.capacities;
    for (let m = 1; m <= 11; m++) validate(ready.schedule(m), m, capacities);
  }
});

Deno.test("the rings fit the schedule as it is timed: W as it is batched", () => {
  const ready = lane();
  const times = timesFor(TIMES, [2, 1]);
  const schedule = makeSchedule("zero-bubble", { stages: 2, microBatches: 11, times, weightBatch: [2, 1] });
  assert.equal(formatSchedule(ready.schedule(11)), formatSchedule(schedule));
  assert.deepEqual(ready.capacities, capacitiesFor(schedule, 11, times));
  assert.equal(ready.schedule(11), ready.schedule(11), "it is made once");
});

/** Most micro-batches between F and W on a stage. */
function mostInFlight(actions: readonly Action[]): number {
  let [now, most] = [0, 0];
  for (const { kind, count } of actions) {
    if (kind === "F") most = Math.max(most, ++now);
    if (kind === "W") now -= count;
  }
  return most;
}

Deno.test("no more micro-batches are in flight than memory holds, and as many as it does", () => {
  const none = { fixed: 0, perSample: 0 };
  const holding = (count: number): StageMemory => ({
    limit: 2 * count, // of micro-batches of 2 samples
    held: 0,
    gradients: 0,
    afterF: { fixed: 0, perSample: 1 },
    afterB: { fixed: 0, perSample: 1 },
    peaks: { F: [{ fixed: 0, perSample: 1 }], B: [none], W: [none], U: [] },
    joined: none,
  });
  const free = lane().schedule(11).map(mostInFlight);
  assert.ok(Math.max(...free) > 2, `${free}`);
  for (const count of [2, 1]) {
    const held = lane({}, [holding(count), undefined]).schedule(11);
    validate(held, 11);
    assert.equal(mostInFlight(held[0]!), count);
  }
  const roomy = lane({}, [holding(100), holding(100)]);
  assert.equal(formatSchedule(roomy.schedule(11)), formatSchedule(lane().schedule(11)));
  // Nothing fits: what the caller refuses is what it looked at before the times were measured.
  const least = lane({}, [holding(0), undefined]).schedule(11)[0]!;
  assert.equal(formatSchedule([least]), formatSchedule([fewestInFlight(11, 1)]));
});
