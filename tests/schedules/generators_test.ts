/** Tests of the schedules themselves: pinned small ones, and all of them over many sizes. @module */
import assert from "node:assert/strict";
import { formatSchedule, parseSchedule, type Schedule } from "../../runtime/schedules/action.ts";
import { gpipe } from "../../runtime/schedules/gpipe.ts";
import { oneForwardOneBackward } from "../../runtime/schedules/one_f_one_b.ts";
import {
  capacitiesFor,
  firstMicroBatches,
  makeSchedule,
  type ScheduleOptions,
  SCHEDULES,
  splitsBackward,
} from "../../runtime/schedules/schedules.ts";
import { simulate } from "../../runtime/schedules/simulate.ts";
import { validate } from "../../runtime/schedules/validate.ts";
import { zeroBubble } from "../../runtime/schedules/zero_bubble.ts";
import { equalTimes, inFlightByStage, PAIRS, unequalTimes } from "./cases.ts";

function is(schedule: Schedule, ...lines: string[]): void {
  assert.equal(formatSchedule(schedule), lines.join("\n"));
}

/** Every schedule of every size, with times alike and unlike. */
function* everySchedule(): Generator<{ schedule: Schedule; options: ScheduleOptions; label: string }> {
  for (const [stages, microBatches] of PAIRS) {
    for (const name of SCHEDULES) {
      const variants: Partial<ScheduleOptions>[] = name !== "zero-bubble" ? [{}] : [
        {},
        { times: unequalTimes(stages, stages * 100 + microBatches) },
        { times: equalTimes(stages, { F: 1, B: 2, W: 0.1 }), maxInFlight: 2 },
        { weightBatch: Array.from({ length: stages }, (_, s) => 1 + s % 4) },
        { weightBatch: new Array(stages).fill(microBatches), maxInFlight: 1 },
      ];
      for (const [i, variant] of variants.entries()) {
        const options = { stages, microBatches, ...variant };
        const label = `${name}, ${stages} stages, ${microBatches} micro-batches, variant ${i}`;
        yield { schedule: makeSchedule(name, options), options, label };
      }
    }
  }
}

Deno.test("gpipe runs all forwards, then all backwards", () => {
  is(gpipe(2, 4), "F0 F1 F2 F3 BW0 BW1 BW2 BW3 U", "F0 F1 F2 F3 BW0 BW1 BW2 BW3 U");
  is(gpipe(3, 1), "F0 BW0 U", "F0 BW0 U", "F0 BW0 U"); // naive model parallel
  is(gpipe(1, 2), "F0 F1 BW0 BW1 U");
});

Deno.test("1f1b alternates after a warm-up of the stages behind", () => {
  is(
    oneForwardOneBackward(2, 4),
    "F0 F1 BW0 F2 BW1 F3 BW2 BW3 U",
    "F0 BW0 F1 BW1 F2 BW2 F3 BW3 U",
  );
  is(
    oneForwardOneBackward(3, 4),
    "F0 F1 F2 BW0 F3 BW1 BW2 BW3 U",
    "F0 F1 BW0 F2 BW1 F3 BW2 BW3 U",
    "F0 BW0 F1 BW1 F2 BW2 F3 BW3 U",
  );
  is(oneForwardOneBackward(3, 2), "F0 F1 BW0 BW1 U", "F0 F1 BW0 BW1 U", "F0 BW0 F1 BW1 U");
  is(oneForwardOneBackward(4, 1), ...new Array(4).fill("F0 BW0 U"));
  is(oneForwardOneBackward(1, 3), "F0 BW0 F1 BW1 F2 BW2 U");
});

Deno.test("zero-bubble puts B first and W into the gaps", () => {
  // Played by hand: B is ready at 3, 5, 9 and 11 on stage 0, which keeps two micro-batches.
  is(
    zeroBubble(4, { times: equalTimes(2) }),
    "F0 F1 B0 W0 B1 F2 W1 F3 B2 W2 B3 W3 U",
    "F0 B0 F1 B1 W0 W1 F2 B2 F3 B3 W2 W3 U",
  );
  is(
    zeroBubble(4, { times: equalTimes(2), maxInFlight: 4 }),
    "F0 F1 F2 B0 F3 B1 W0 B2 W1 B3 W2 W3 U",
    "F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3 U",
  );
  is(zeroBubble(3, { times: equalTimes(1), maxInFlight: 1 }), "F0 B0 W0 F1 B1 W1 F2 B2 W2 U");
  is(zeroBubble(1, { times: equalTimes(3) }), ...new Array(3).fill("F0 B0 W0 U"));
  // On stage 1, B0 and F1 are both ready at 6: the stage before waits for B0.
  is(
    zeroBubble(2, { times: [{ F: 3, B: 3, W: 1 }, { F: 1, B: 2, W: 3 }, { F: 1, B: 1, W: 1 }] }),
    "F0 F1 B0 W0 B1 W1 U",
    "F0 B0 F1 W0 B1 W1 U",
    "F0 B0 W0 F1 B1 W1 U",
  );
});

Deno.test("zero-bubble batches W, and takes what is left in a smaller batch", () => {
  is(
    zeroBubble(5, { times: equalTimes(1), maxInFlight: 2, weightBatch: [2] }),
    "F0 B0 F1 B1 W0x2 F2 B2 F3 B3 W2x2 F4 B4 W4 U",
  );
  is(
    zeroBubble(3, { times: equalTimes(2), weightBatch: [1, 3] }),
    "F0 F1 F2 B0 W0 B1 W1 B2 W2 U",
    "F0 B0 F1 B1 F2 B2 W0x3 U",
  );
});

Deno.test("every schedule is legal and runs with the rings that it asks for", () => {
  let checked = 0;
  for (const { schedule, options, label } of everySchedule()) {
    const { stages, microBatches, times } = options;
    assert.equal(schedule.length, stages, label);
    const capacities = capacitiesFor(schedule, microBatches, times);
    for (const slots of [capacities.activations, capacities.gradients]) {
      assert.equal(slots.length, stages - 1, label);
      assert.ok(slots.every((n) => n >= 1 && n <= microBatches), label);
    }
    assert.doesNotThrow(() => validate(schedule, microBatches, capacities), label);
    checked++;
  }
  assert.equal(checked, PAIRS.length * 7);
});

Deno.test("no sender waits for room in the rings that a schedule asks for", () => {
  for (const { schedule, options, label } of everySchedule()) {
    const { stages, microBatches, times = equalTimes(stages) } = options;
    const capacities = capacitiesFor(schedule, microBatches, times);
    const free = simulate(schedule, { times });
    assert.deepEqual(simulate(schedule, { times, capacities }).played, free.played, label);
    for (const kind of ["activations", "gradients"] as const) {
      // One slot more than is in use, and never more than there are micro-batches.
      const roomy = free.peak[kind].map((n) => Math.min(microBatches, n + 1));
      assert.deepEqual(capacities[kind], roomy, label);
    }
  }
});

Deno.test("a smaller last batch runs the first part of the schedule, in the rings of the whole", () => {
  let others = 0;
  for (const { schedule, options, label } of everySchedule()) {
    const { stages, microBatches, times } = options;
    const capacities = capacitiesFor(schedule, microBatches, times);
    for (const m of new Set([1, 2, 3, 9, microBatches >> 1, microBatches - 1, microBatches])) {
      if (m < 1 || m > microBatches) continue;
      const part = firstMicroBatches(schedule, m);
      assert.doesNotThrow(() => validate(part, m, capacities), `${label}, ${m} of them`);
      inFlightByStage(part).forEach((n, s) => assert.ok(n <= inFlightByStage(schedule)[s]!, label));
      if (label.startsWith("gpipe")) assert.deepEqual(part, gpipe(stages, m));
      if (label.startsWith("1f1b")) assert.deepEqual(part, oneForwardOneBackward(stages, m));
      const own = makeSchedule("zero-bubble", { ...options, microBatches: m });
      if (label.startsWith("zero-bubble") && formatSchedule(own) !== formatSchedule(part)) others++;
    }
  }
  assert.ok(others > 100, "a zero-bubble schedule of its own would be another one");
});

Deno.test("a schedule of a smaller batch's own might wait for ever in the rings of the whole", () => {
  const times = [{ F: 4, B: 3, W: 1 }, { F: 1, B: 2, W: 2 }];
  const make = (microBatches: number) =>
    makeSchedule("zero-bubble", { stages: 2, microBatches, times, weightBatch: [2, 1] });
  const capacities = capacitiesFor(make(11), 11, times);
  assert.throws(() => validate(make(6), 6, capacities), { name: "DeadlockError" });
  validate(firstMicroBatches(make(11), 6), 6, capacities);
});

Deno.test("every schedule reads back from its text", () => {
  for (const { schedule, label } of everySchedule()) {
    assert.deepEqual(parseSchedule(formatSchedule(schedule)), schedule, label);
  }
});

Deno.test("parseSchedule() reads every kind of action, and refuses other words", () => {
  const text = "F0 B10 W2x3 BW4 U\nF7 U";
  const schedule = parseSchedule(`\n  ${text.replace(" ", "   ")}  \n`);
  assert.deepEqual(schedule[0]?.slice(0, 3), [
    { kind: "F", microBatch: 0, count: 1 },
    { kind: "B", microBatch: 10, count: 1 },
    { kind: "W", microBatch: 2, count: 3 },
  ]);
  assert.equal(formatSchedule(schedule), text);
  for (const word of ["G0", "F", "F-1", "W0x", "U0", "BWx2", "f0", "F0B0"]) {
    assert.throws(() => parseSchedule(`F0 ${word} U`), {
      name: "SyntaxError",
      message: `Cannot read action "${word}": expected one such as F0, B1, W2x3, BW0, R or U`,
    });
  }
});

Deno.test("only zero-bubble runs W apart from B", () => {
  const options = { stages: 2, microBatches: 3 };
  const split = SCHEDULES.filter((name) => splitsBackward(makeSchedule(name, options)));
  assert.deepEqual(split, ["zero-bubble"]);
});

Deno.test("gpipe keeps every micro-batch in flight, 1f1b as many as there are stages from its own on", () => {
  for (const [p, m] of PAIRS) {
    assert.deepEqual(inFlightByStage(gpipe(p, m)), new Array(p).fill(m));
    assert.deepEqual(
      inFlightByStage(oneForwardOneBackward(p, m)),
      Array.from({ length: p }, (_, s) => Math.min(m, p - s)),
    );
  }
});

Deno.test("zero-bubble keeps no more in flight than it may, or than a batched W needs", () => {
  for (const [p, m] of PAIRS) {
    for (const maxInFlight of [1, 2, 3, m]) {
      for (const weightBatch of [undefined, Array.from({ length: p }, (_, s) => 1 + s)]) {
        const times = unequalTimes(p, m + maxInFlight);
        const most = Math.max(maxInFlight, ...weightBatch ?? []);
        const kept = inFlightByStage(
          zeroBubble(m, { times, maxInFlight, ...(weightBatch ? { weightBatch } : {}) }),
        );
        assert.ok(kept.every((n) => n <= most), `${p} stages, ${m} micro-batches: ${kept}, not ${most}`);
      }
    }
  }
});
