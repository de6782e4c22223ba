import assert from "node:assert/strict";
import {
  fewestInFlight,
  largestFitting,
  memoryNeeded,
  type MemoryRequest,
  refuseTooLarge,
} from "../../runtime/coordinator/memory_fit.ts";
import { parseSchedule } from "../../runtime/schedules/action.ts";
import { makeSchedule } from "../../runtime/schedules/schedules.ts";
import { type Growth, growth, highest, peakFor, type StageMemory } from "../../stages/stage_memory.ts";

/** Of a stage that holds 100 units, and 10 for each sample in flight. */
const STAGE: StageMemory = {
  limit: 1000,
  held: 100,
  gradients: 50,
  afterF: { fixed: 0, perSample: 10 },
  afterB: { fixed: 0, perSample: 15 },
  peaks: {
    F: [{ fixed: 0, perSample: 12 }],
    B: [{ fixed: 60, perSample: 0 }, { fixed: 0, perSample: 20 }],
    W: [{ fixed: 70, perSample: 0 }],
    U: [{ fixed: 30, perSample: 0 }],
  },
  joined: { fixed: 0, perSample: 2 },
};

const scaled = ({ fixed, perSample }: Growth): Growth => ({
  fixed: fixed * 1024 ** 2,
  perSample: perSample * 1024 ** 2,
});

/** The same in units of 1 MiB. */
const MEBIBYTES: StageMemory = {
  limit: STAGE.limit * 1024 ** 2,
  held: STAGE.held * 1024 ** 2,
  gradients: STAGE.gradients * 1024 ** 2,
  afterF: scaled(STAGE.afterF),
  afterB: scaled(STAGE.afterB),
  peaks: {
    F: STAGE.peaks.F.map(scaled),
    B: STAGE.peaks.B.map(scaled),
    W: STAGE.peaks.W.map(scaled),
    U: STAGE.peaks.U.map(scaled),
  },
  joined: scaled(STAGE.joined),
};

function request(batchSize: number, options: Partial<MemoryRequest["options"]>): MemoryRequest {
  const devices = [{ name: "cpu:0", kind: "cpu", index: 0 }, {
    name: "cpu:1",
    kind: "cpu",
    index: 1,
  }] as const;
  return {
    memory: [{ ...MEBIBYTES, limit: 1e12 }, MEBIBYTES],
    shape: { mode: "train", batchSize },
    options: {
      microBatches: 4,
      splitSize: undefined,
      devices,
      replicas: 1,
      strategy: "pipeline",
      ...options,
    },
    schedule: (microBatches) => makeSchedule("gpipe", { stages: 2, microBatches }),
  };
}

Deno.test("memoryNeeded() follows what each action takes and leaves", () => {
  const needed = (text: string, samples: number) => memoryNeeded(STAGE, parseSchedule(text)[0]!, samples);
  assert.equal(needed("F0", 2), 124);
  assert.equal(needed("F0 BW0 U", 2), 180); // B above one in flight: 100 + 20 + 60
  assert.equal(needed("F0 BW0 F1 BW1 U", 2), 230); // the second B above the gradients too
  assert.equal(needed("F0 F1 F2 BW0 BW1 BW2 U", 10), 600); // B above three in flight: 100 + 300 + 200
  assert.equal(needed("F0 B0 F1 B1 W0x2 U", 10), 550); // the second B above 100 + 150 + 100
  assert.equal(memoryNeeded(STAGE, fewestInFlight(4, 4), 1), 238); // W above four in flight: 100 + 4 x 15 + 70 + 4 x 2
  assert.equal(needed("F0 BW0 U", 0), 180); // the update above the gradients
});

Deno.test("highest() keeps what can be the largest for some number of samples", () => {
  const all = [growth(10, 20), growth(30, 31), growth(5, 6), growth(12, 21)];
  const peak = highest(all);
  assert.deepEqual(peak, [growth(10, 20), growth(12, 21), growth(30, 31)]);
  for (const samples of [1, 2, 3, 10, 1000]) {
    const largest = Math.max(...all.map(({ fixed, perSample }) => fixed + perSample * samples));
    assert.equal(peakFor(peak, samples), largest);
  }
  assert.equal(peakFor([], 3), 0);
});

Deno.test("largestFitting() finds the border", () => {
  for (const border of [0, 1, 7, 99, 100]) assert.equal(largestFitting(100, (n) => n <= border), border);
});

Deno.test("refuseTooLarge() names the stage, what it would need, and the largest batch that fits", () => {
  // Four in flight, B on top: 100 + 6 x 10 x samples in a micro-batch, at most 1000: 15 of them.
  refuseTooLarge(request(60, {}));
  assert.throws(() => refuseTooLarge(request(61, {})), {
    name: "RangeError",
    message:
      'Cannot train on a batch of 61 (micro-batches of 16) on engine "wasm": stage 1 on cpu:1 would need ' +
      '1.04 GiB, and WebAssembly has 1000 MiB; use at most 60 samples a batch, more micro-batches, or engine "tensorflow"',
  });
  const split = { microBatches: 1, splitSize: 10 };
  refuseTooLarge(request(70, split)); // seven in flight: 100 + 700 + 200
  assert.throws(
    () => refuseTooLarge(request(71, split)),
    /batch of 71 \(micro-batches of 10\).*at most 70 samples a batch, a smaller splitSize, or/,
  );
});

Deno.test("refuseTooLarge() counts all batches of one update, and names the batch of which as many fit", () => {
  const joined = (own: number) => ({
    ...request(3 * own, {}),
    shape: { mode: "train", batchSize: 3 * own, joined: 3 } as const,
  });
  refuseTooLarge(joined(24)); // twelve in flight, B on top: 100 + 14 x 10 x 6
  assert.throws(
    () => refuseTooLarge(joined(25)),
    /^RangeError: Cannot train on 3 batches of 25 at once \(micro-batches of 7\).*at most 24 samples a batch/,
  );
});

Deno.test("refuseTooLarge() does not say that as much is needed as there is", () => {
  const least = { ...MEBIBYTES, limit: 1059.9 * 1024 ** 2 }; // of 1060
  const tight = { ...request(61, {}), memory: [least, least] };
  assert.throws(
    () => refuseTooLarge(tight),
    /would need just over 1\.04 GiB, and WebAssembly has 1\.04 GiB;/,
  );
});

Deno.test("refuseTooLarge() names no batch where none fits, and accepts what the engine cannot tell", () => {
  const full = { ...MEBIBYTES, held: 2 * MEBIBYTES.limit };
  const small = request(8, { strategy: "modelParallel", microBatches: 1 });
  assert.throws(
    () => refuseTooLarge({ ...small, memory: [full, MEBIBYTES] }),
    /stage 0 on cpu:0 would need .*; use strategy "pipeline", or engine "tensorflow"$/,
  );
  refuseTooLarge({ ...request(1e6, {}), memory: [undefined, undefined] });
});

Deno.test("refuseTooLarge() counts the forward alone where nothing is trained", () => {
  const evaluating = { ...request(300, {}), shape: { mode: "evaluate", batchSize: 300 } } as const;
  refuseTooLarge(evaluating); // 100 + 12 x 75 = 1000
  assert.throws(
    () => refuseTooLarge({ ...evaluating, shape: { mode: "predict", batchSize: 301 } }),
    /^RangeError: Cannot predict a batch of 301 \(micro-batches of 76\).*at most 300 samples a batch/,
  );
});
