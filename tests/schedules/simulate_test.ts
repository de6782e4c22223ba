/** Tests of the simulator against times computed by hand and by formula. @module */
import assert from "node:assert/strict";
import { type ActionKind, formatAction, parseSchedule } from "../../runtime/schedules/action.ts";
import { gpipe } from "../../runtime/schedules/gpipe.ts";
import { oneForwardOneBackward } from "../../runtime/schedules/one_f_one_b.ts";
import {
  type PlayedAction,
  simulate,
  type Simulation,
  type StageTimes,
} from "../../runtime/schedules/simulate.ts";
import { zeroBubble } from "../../runtime/schedules/zero_bubble.ts";
import { equalTimes, inFlightByStage, PAIRS, random, unequalTimes } from "./cases.ts";

/** `F0@0-2 F1@2-4 ...`, a line per stage. */
function timeline({ played }: Simulation): string[] {
  return played.map((actions) =>
    actions.map(({ action, start, end }) => `${formatAction(action)}@${start}-${end}`).join(" ")
  );
}

/** When each micro-batch's action of one of these kinds ends. */
function ends(actions: readonly PlayedAction[], kinds: readonly ActionKind[]): number[] {
  return actions.filter(({ action }) => kinds.includes(action.kind)).flatMap(({ action, end }) =>
    new Array(action.count).fill(end)
  );
}

function near(actual: number, expected: number, label: string): void {
  assert.ok(Math.abs(actual - expected) < 1e-9 * expected, `${label}: ${actual}, not ${expected}`);
}

Deno.test("simulate() waits for messages, on stages that take different times", () => {
  const times: StageTimes[] = [{ F: 2, B: 1, W: 1, U: 5 }, { F: 1, B: 3, W: 2, U: 7 }];
  const simulation = simulate(gpipe(2, 2), { times });
  assert.deepEqual(timeline(simulation), [
    "F0@0-2 F1@2-4 BW0@10-12 BW1@15-17 U@17-22",
    "F0@2-3 F1@4-5 BW0@5-10 BW1@10-15 U@15-22",
  ]);
  assert.equal(simulation.makespan, 22);
});

Deno.test("simulate() takes one of F, B and W where no times are given, and none for U", () => {
  assert.deepEqual(timeline(simulate(parseSchedule("F0 B0 F1 BW1 W0 U"))), [
    "F0@0-1 B0@1-2 F1@2-3 BW1@3-5 W0@5-6 U@6-6",
  ]);
});

Deno.test("simulate() counts a batched W for each of its micro-batches", () => {
  const times = [{ F: 1, B: 1, W: 0.5 }];
  assert.deepEqual(timeline(simulate(parseSchedule("F0 B0 F1 B1 F2 B2 W0x3 U"), { times })), [
    "F0@0-1 B0@1-2 F1@2-3 B1@3-4 F2@4-5 B2@5-6 W0x3@6-7.5 U@7.5-7.5",
  ]);
});

Deno.test("simulate() holds a stage that has computed until its ring has room", () => {
  const activations = parseSchedule("F0 F1 BW0 BW1 U\nF0 BW0 F1 BW1 U");
  const times = equalTimes(2);
  assert.deepEqual(
    timeline(simulate(activations, { times, capacities: { activations: [1], gradients: [2] } })),
    [
      "F0@0-1 F1@1-4 BW0@4-6 BW1@7-9 U@9-9", // F1 has room when stage 1 has done BW0
      "F0@1-2 BW0@2-4 F1@4-5 BW1@5-7 U@7-7",
    ],
  );
  assert.match(timeline(simulate(activations, { times }))[0]!, /^F0@0-1 F1@1-2 BW0@4-6/);
  const gradients = parseSchedule("F0 F1 B0 W0 B1 W1 U\nF0 F1 B0 B1 W0 W1 U");
  assert.deepEqual(
    timeline(simulate(gradients, { times, capacities: { activations: [2], gradients: [1] } })),
    [
      "F0@0-1 F1@1-2 B0@4-5 W0@5-6 B1@6-7 W1@7-8 U@8-8",
      "F0@1-2 F1@2-3 B0@3-4 B1@4-6 W0@6-7 W1@7-8 U@8-8", // B1 has room when stage 0 has done W0
    ],
  );
});

Deno.test("simulate() tells with how many slots no sender waits", () => {
  assert.deepEqual(simulate(gpipe(3, 4)).peak.activations, [4, 4]);
  assert.deepEqual(simulate(oneForwardOneBackward(4, 8)).peak.activations, [4, 3, 2]);
  // Nothing goes back before all has been received.
  const late = parseSchedule("F0 F1 F2 B0 B1 B2 W0x3 U\nF0 F1 F2 B0 B1 B2 W0x3 U");
  assert.deepEqual(simulate(late).peak, { activations: [3], gradients: [3] });
  for (const [p, m] of PAIRS) {
    const times = unequalTimes(p, m);
    for (const schedule of [oneForwardOneBackward(p, m), zeroBubble(m, { times })]) {
      const { peak, played } = simulate(schedule, { times });
      for (let s = 0; s + 1 < p; s++) {
        const taken = (from: number, kinds: ActionKind[], to: number) => {
          const freed = ends(played[to]!, ["W", "BW"]);
          return Math.max(
            ...ends(played[from]!, kinds).map((t, i) => i + 1 - freed.filter((f) => f <= t).length),
          );
        };
        const forward = taken(s, ["F"], s + 1);
        assert.ok(peak.activations[s]! >= forward && peak.activations[s]! <= Math.min(m, forward + 2));
        const back = taken(s + 1, ["B", "BW"], s);
        assert.ok(peak.gradients[s]! >= back && peak.gradients[s]! <= m);
      }
    }
  }
});

Deno.test("gpipe and 1f1b take (m + p - 1)(F + B + W) on stages alike", () => {
  for (const [p, m] of PAIRS) {
    for (const times of [{ F: 1, B: 1, W: 1 }, { F: 3, B: 1, W: 0.5 }, { F: 1, B: 2.5, W: 2 }]) {
      const work = times.F + times.B + times.W;
      for (const schedule of [gpipe(p, m), oneForwardOneBackward(p, m)]) {
        const { makespan, played } = simulate(schedule, { times: equalTimes(p, times) });
        near(makespan, (m + p - 1) * work, `${p} stages, ${m} micro-batches`);
        const busy = played[0]!.reduce((sum, { start, end }) => sum + end - start, 0);
        near(1 - busy / makespan + 1, (p - 1) / (m + p - 1) + 1, "bubble");
      }
    }
  }
});

Deno.test("zero-bubble reaches the least possible time on two stages alike", () => {
  // Stage 1 starts after one F, and its W fills what is left.
  for (const m of [1, 2, 4, 8, 16]) {
    assert.equal(
      simulate(zeroBubble(m, { times: equalTimes(2) }), { times: equalTimes(2) }).makespan,
      m === 1 ? 5 : 3 * m + 1,
    );
  }
});

Deno.test("zero-bubble is never slower than 1f1b", () => {
  const draw = random(7);
  for (const [p, m] of PAIRS) {
    for (let i = 0; i < 6; i++) {
      const times = i < 3
        ? equalTimes(p, { F: 0.5 + draw(), B: 0.5 + draw(), W: 0.5 + draw() })
        : unequalTimes(p, i);
      const ours = simulate(zeroBubble(m, { times }), { times }).makespan;
      const theirs = simulate(oneForwardOneBackward(p, m), { times }).makespan;
      assert.ok(ours <= theirs * (1 + 1e-9), `${p} stages, ${m} micro-batches: ${ours}, 1f1b ${theirs}`);
      if (p > 1 && m >= 4 && i < 3) assert.ok(ours < theirs * 0.99, `${p} stages, ${m} micro-batches gain`);
    }
  }
});

Deno.test("zero-bubble keeps the fewest in flight that cost less than 0.5 %, no fewer than stages", () => {
  let above = 0;
  for (const [p, m] of PAIRS) {
    for (const times of [equalTimes(p), unequalTimes(p, p + m)]) {
      const cost = (maxInFlight: number) =>
        simulate(zeroBubble(m, { times, maxInFlight }), { times }).makespan;
      let bound = Math.min(p, m);
      while (cost(bound) > cost(m) * 1.005) bound++;
      if (bound > p) above++;
      assert.deepEqual(zeroBubble(m, { times }), zeroBubble(m, { times, maxInFlight: bound }));
      assert.ok(Math.max(...inFlightByStage(zeroBubble(m, { times }))) <= bound);
    }
  }
  assert.ok(above > 5, `the bound is above the number of stages in ${above} cases`);
});
