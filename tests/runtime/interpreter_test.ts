/** When the interpreter gives slots back, and what it does around an update. @module */
import assert from "node:assert/strict";
import type { AbortFlag } from "../../ring/abort.ts";
import type { Contribution, Group } from "../../ring/group.ts";
import type { EngineTensors, StageExecutor, Workload } from "../../stages/executor.ts";
import type { StepCommand } from "../../runtime/protocol.ts";
import { parseSchedule } from "../../runtime/schedules/action.ts";
import { Interpreter, type Lane } from "../../runtime/worker/interpreter.ts";
import { NormClipping } from "../../runtime/worker/norm_clipping.ts";

interface Settings {
  readonly actions: string;
  readonly mode?: Workload["mode"];
  /** Whether tensors lie in the slots that they came in. */
  readonly inPlace?: boolean;
  readonly clipping?: NormClipping;
}

/** Runs a middle stage whose rings, executor and tensors note what is done to them. */
function run({ actions, mode = "train", inPlace = true, clipping }: Settings): string[] {
  const log: string[] = [];
  const receiver = (name: string) => ({
    channel: { name, tensor: 0 },
    receive: ({ microBatch }: { microBatch: number }) => {
      log.push(`receive ${name}${microBatch}`);
      return { sequence: microBatch, shape: [1], dtype: "float32", payload: new Uint8Array(0) };
    },
    release: (sequence: number) => log.push(`release ${name}${sequence}`),
  });
  const sender = (name: string) => ({
    channel: { name, tensor: 0 },
    send: ({ microBatch }: { microBatch: number }, write: (payload: Uint8Array) => void) => {
      write(new Uint8Array(0));
      log.push(`send ${name}${microBatch}`);
    },
  });
  const lane = {
    waitMs: 0,
    inputs: [receiver("x")],
    targets: [],
    outputs: mode === "predict" ? [] : [sender("y")],
    outputGradients: mode === "train" ? [receiver("dy")] : [],
    inputGradients: mode === "train" ? [sender("dx")] : [],
  } as unknown as Lane;
  const executor = {
    engineMs: 0,
    forward: (microBatch: { index: number }) => (log.push(`F${microBatch.index}`), ["y"]),
    infer: (microBatch: { index: number }) => (log.push(`infer${microBatch.index}`), ["y"]),
    backward: (index: number) => (log.push(`B${index}`), ["dx"]),
    weight: (indices: number[]) => void log.push(`W${indices.join("+")}`),
    gradientNorm: () => (log.push("norm"), 3),
    update: (_: unknown, scale = 1) => (log.push(scale === 1 ? "U" : `U*${scale}`), 0),
    takeResults: () => new Float32Array(0),
  } as unknown as StageExecutor;
  const tensors = {
    receive: () => ({ value: "t", inPlace }),
    specOf: () => ({ shape: [1], dtype: "float32" }),
    byteLengthOf: () => 4,
    copyTo: () => void (mode === "predict" && log.push("copy")),
    free: () => {},
  } as unknown as EngineTensors;
  const [own] = parseSchedule(actions);
  const workload = { mode, inputs: [{ shape: [1], dtype: "float32" }], targets: [] } as unknown as Workload;
  const command = {
    step: 0,
    actions: own,
    microBatches: [0, 1, 2].map((index) => ({ index, step: 0, firstSample: index, size: 1, batchSize: 3 })),
    workloads: [workload, workload, workload],
    scalars: { iteration: 0 },
    trace: clipping !== undefined,
  } as unknown as StepCommand;
  const interpreter = new Interpreter(executor, tensors, { check() {} } as unknown as AbortFlag, clipping);
  const { trace } = interpreter.run(lane, command);
  log.push(...trace.filter(({ wait }) => wait > 0).map(({ action, wait }) => `${action.kind} waits ${wait}`));
  return log;
}

/** The end of stage 1 in a group of two; the other member's norm comes after a wait of 5 ms. */
function groupOfTwo(other: number): Group {
  let waitMs = 0;
  return {
    rank: 1,
    size: 2,
    get waitMs() {
      return waitMs;
    },
    reduce(_slot: number, length: number, { read }: Contribution) {
      const sum = new Float32Array(new SharedArrayBuffer(4 * length));
      read(0, sum);
      sum[0]! += other;
      return { advance: () => true, finish: () => (waitMs += 5, sum) };
    },
    release() {},
    reset() {},
  };
}

Deno.test("B and W as one: slots go back after the gradient, which may share them, was sent", () => {
  assert.deepEqual(run({ actions: "F0 F1 BW0 BW1 U" }), [
    ...["receive x0", "F0", "send y0", "receive x1", "F1", "send y1"],
    ...["receive dy0", "B0", "send dx0", "release x0", "release dy0"],
    ...["receive dy1", "B1", "send dx1", "release x1", "release dy1", "U"],
  ]);
});

Deno.test("B apart from W: slots go back after W", () => {
  assert.deepEqual(run({ actions: "F0 F1 B0 B1 W0 W1" }), [
    ...["receive x0", "F0", "send y0", "receive x1", "F1", "send y1"],
    ...["receive dy0", "B0", "send dx0", "receive dy1", "B1", "send dx1"],
    ...["W0", "release x0", "release dy0", "W1", "release x1", "release dy1"],
  ]);
});

Deno.test("W of several micro-batches gives back the slots of all of them, and of no other", () => {
  assert.deepEqual(run({ actions: "F0 F1 F2 B0 B1 B2 W0x2" }).slice(-5), [
    "W0+1",
    ...["release x0", "release dy0", "release x1", "release dy1"],
  ]);
});

Deno.test("without training: slots go back after the outputs were sent, or copied for the caller", () => {
  assert.deepEqual(run({ actions: "F0", mode: "evaluate" }), [
    "receive x0",
    "infer0",
    "send y0",
    "release x0",
  ]);
  assert.deepEqual(run({ actions: "F0", mode: "predict" }), ["receive x0", "infer0", "copy", "release x0"]);
});

Deno.test("tensors that were copied free their slots at once", () => {
  assert.deepEqual(run({ actions: "F0 BW0", inPlace: false }), [
    ...["receive x0", "release x0", "F0", "send y0", "receive dy0", "release dy0", "B0", "send dx0"],
  ]);
});

Deno.test("clipping by norm: the update waits for all stages' norms, which the trace tells, and scales to the limit", () => {
  const clipping = (limit: number) => new NormClipping(limit, groupOfTwo(4)); // with this stage's 3, the norm is 5
  assert.deepEqual(run({ actions: "U", clipping: clipping(2.5) }), ["norm", "U*0.5", "U waits 5"]);
  assert.deepEqual(run({ actions: "U", clipping: clipping(5) }), ["norm", "U", "U waits 5"]);
  assert.deepEqual(run({ actions: "U", clipping: new NormClipping(1.5, undefined) }), ["norm", "U*0.5"]);
});
