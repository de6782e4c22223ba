/** Tests of what `validate` refuses: illegal schedules, and those that would wait for ever. @module */
import assert from "node:assert/strict";
import { action, parseSchedule } from "../../runtime/schedules/action.ts";
import { oneForwardOneBackward } from "../../runtime/schedules/one_f_one_b.ts";
import type { Capacities } from "../../runtime/schedules/simulate.ts";
import { validate } from "../../runtime/schedules/validate.ts";

/** Illegal schedules of one stage for three micro-batches, and why. */
const ILLEGAL: readonly (readonly [fault: string, text: string, message: string])[] = [
  ["a missing F", "F0 F1 B0 B1 W0 W1 U", "Cannot run stage 0: it has 2 of 3 F actions"],
  ["a missing B", "F0 F1 F2 B0 B1 W0 W1 U", "Cannot run stage 0: it has 2 of 3 B actions"],
  ["a missing W", "F0 F1 F2 B0 B1 B2 W0 W1 U", "Cannot run stage 0: it has 2 of 3 W actions"],
  ["no W at all", "F0 F1 F2 B0 B1 B2 U", "Cannot run stage 0: it has 0 of 3 W actions"],
  ["a missing U", "F0 F1 F2 BW0 BW1 BW2", "Cannot run stage 0: it has no update"],
  ["a doubled F", "F0 F1 F1 F2 BW0 BW1 BW2 U", "Cannot run F1 on stage 0: expected F2 next"],
  ["a doubled BW", "F0 F1 F2 BW0 BW0 BW1 BW2 U", "Cannot run BW0 on stage 0: expected B1 next"],
  ["a doubled W", "F0 F1 F2 B0 B1 B2 W0x2 W1 W2 U", "Cannot run W1 on stage 0: expected W2 next"],
  ["a B after a BW", "F0 F1 F2 BW0 B0 BW1 BW2 U", "Cannot run B0 on stage 0: expected B1 next"],
  ["an F out of order", "F0 F2 F1 BW0 BW1 BW2 U", "Cannot run F2 on stage 0: expected F1 next"],
  ["a B out of order", "F0 F1 F2 B1 B0 B2 W0x3 U", "Cannot run B1 on stage 0: expected B0 next"],
  ["a W out of order", "F0 F1 F2 B0 B1 B2 W2 W0x2 U", "Cannot run W2 on stage 0: expected W0 next"],
  ["a B before its F", "F0 F1 B0 B1 B2 F2 W0x3 U", "Cannot run B2 on stage 0: its F comes after it"],
  ["a BW before its F", "BW0 F0 F1 F2 BW1 BW2 U", "Cannot run BW0 on stage 0: its F comes after it"],
  ["a W before its B", "F0 F1 F2 B0 W0 W1 B1 B2 W2 U", "Cannot run W1 on stage 0: its B comes after it"],
  [
    "a batched W before its last B",
    "F0 F1 F2 B0 B1 W0x3 B2 U",
    "Cannot run W0x3 on stage 0: its B comes after it",
  ],
  ["an update that is not last", "F0 F1 F2 BW0 BW1 U BW2", "Cannot run U on stage 0: the update comes last"],
  ["two updates", "F0 F1 F2 BW0 BW1 BW2 U U", "Cannot run U on stage 0: the update comes last"],
  ["an F out of range", "F0 F1 F2 F3 BW0 U", "Cannot run F3 on stage 0: the step has micro-batches 0 to 2"],
  [
    "a batched W that reaches out of range",
    "F0 F1 F2 B0 B1 B2 W0x4 U",
    "Cannot run W0x4 on stage 0: the step has micro-batches 0 to 2",
  ],
  [
    "a W of none",
    "F0 F1 F2 B0 B1 B2 W0x0 W0x3 U",
    "Cannot run W0x0 on stage 0: the step has micro-batches 0 to 2",
  ],
  ["a batched B", "F0 F1 F2 B0x3 W0x3 U", "Cannot run B0x3 on stage 0: only W takes several micro-batches"],
  ["a batched BW", "F0 F1 F2 BW0x3 U", "Cannot run BW0x3 on stage 0: only W takes several micro-batches"],
  ["a batched F", "F0x3 BW0 BW1 BW2 U", "Cannot run F0x3 on stage 0: only W takes several micro-batches"],
];

for (const [fault, text, message] of ILLEGAL) {
  Deno.test(`validate() refuses ${fault}`, () => {
    assert.throws(() => validate(parseSchedule(text), 3), { name: "ScheduleError", message });
    // Found in any stage, and named there.
    const legal = "F0 F1 F2 BW0 BW1 BW2 U";
    const elsewhere = message.replace("stage 0", "stage 1");
    assert.throws(() => validate(parseSchedule(`${legal}\n${text}\n${legal}`), 3), { message: elsewhere });
  });
}

Deno.test("validate() refuses a micro-batch that does not exist", () => {
  const schedule = [[action("F"), action("BW"), action("U")]]; // of micro-batch -1
  assert.throws(() => validate(schedule, 1), /Cannot run F-1 on stage 0/);
});

Deno.test("validate() takes stages that split the backward beside stages that do not", () => {
  validate(parseSchedule("F0 F1 BW0 BW1 U\nF0 F1 B0 B1 W0x2 U\nF0 B0 W0 F1 BW1 U"), 2);
});

Deno.test("validate() refuses what waits for a message that only comes later", () => {
  // Both stages are legal by themselves: stage 0 wants all gradients back before its last forward.
  const text = "F0 BW0 F1 BW1 U\nF0 F1 BW0 BW1 U";
  assert.throws(() => validate(parseSchedule(text), 2), {
    name: "DeadlockError",
    message: "Schedule would wait for ever: " +
      "stage 0 waits, after F0, in BW0 for message 0 of gradients from stage 1 to 0; " +
      "stage 1 waits, after F0, in F1 for message 1 of activations from stage 0 to 1",
  });
});

function refuses(text: string, microBatches: number, capacities: Capacities, message: string): void {
  assert.throws(() => validate(parseSchedule(text), microBatches, capacities), {
    name: "DeadlockError",
    message,
  });
  validate(parseSchedule(text), microBatches); // it is the rings that are too small
}

Deno.test("validate() refuses too few slots for activations, and names the actions that wait", () => {
  const text = "F0 F1 F2 BW0 BW1 BW2 U\nF0 F1 F2 BW0 BW1 BW2 U";
  refuses(
    text,
    3,
    { activations: [2], gradients: [3] },
    "Schedule would wait for ever: " +
      "stage 0 waits, after F1, in F2 for room to send 2 of activations from stage 0 to 1 (2 slots); " +
      "stage 1 waits, after F1, in F2 for message 2 of activations from stage 0 to 1",
  );
  validate(parseSchedule(text), 3, { activations: [3], gradients: [1] });
});

Deno.test("validate() refuses too few slots for gradients, and names the actions that wait", () => {
  // Stage 0 gives a gradient's slot back in W, which it does after all of its Bs.
  const text = "F0 F1 F2 B0 B1 B2 W0x3 U\nF0 B0 W0 F1 B1 W1 F2 B2 W2 U";
  refuses(
    text,
    3,
    { activations: [3], gradients: [2] },
    "Schedule would wait for ever: " +
      "stage 0 waits, after B1, in B2 for message 2 of gradients from stage 1 to 0; " +
      "stage 1 waits, after F2, in B2 for room to send 2 of gradients from stage 1 to 0 (2 slots)",
  );
  validate(parseSchedule(text), 3, { activations: [1], gradients: [3] });
});

Deno.test("validate() refuses too few slots between any two stages, and names every stage that waits", () => {
  const schedule = oneForwardOneBackward(4, 8);
  const enough = { activations: [4, 3, 2], gradients: [1, 1, 1] };
  validate(schedule, 8, enough);
  for (const cut of [0, 1, 2]) {
    const activations = enough.activations.with(cut, enough.activations[cut]! - 2);
    const few = Math.max(1, activations[cut]!);
    if (few >= 4 - cut - 1) continue; // the receiver needs one slot for each that it keeps in flight
    assert.throws(
      () => validate(schedule, 8, { ...enough, activations: activations.with(cut, few) }),
      (error: Error) => {
        const waits = [...error.message.matchAll(/stage (\d) waits, after \w+, in \w+ for/g)].map((m) =>
          m[1]
        );
        assert.deepEqual(waits, ["0", "1", "2", "3"]);
        assert.match(error.message, new RegExp(`room to send \\d of activations from stage ${cut} to`));
        return error.name === "DeadlockError";
      },
    );
  }
});
