/** Times what the costs of single layers do not tell of a stage: its actions as a whole, and what is around them. @module */
import type { EngineTensors, StageExecutor, Workload } from "../stages/executor.ts";
import { zerosOn } from "./measure.ts";

/** Rounds measured, after one that warms up. */
const ROUNDS = 2;
/** Bytes of the tensor that is copied: more than caches hold of it and of its copy. */
const COPY_BYTES = 1 << 24;

/** Times of a stage in milliseconds. */
export interface Gauge {
  /** Forward of one micro-batch. */
  readonly F: number;
  /** Backward of one micro-batch: to the inputs, or both parts at once. */
  readonly B: number;
  /** Backward to the weights, where it runs apart; else 0. */
  readonly W: number;
  /** The optimizer's update. */
  readonly U: number;
  /** Of an action, outside the engine. */
  readonly host: number;
  /** Of copying a tensor into shared memory, for each byte. */
  readonly copyPerByte: number;
}

/**
 * Runs whole steps with inputs of zeros. Of each time the least is taken: what else the machine does adds to it. The
 * stage's optimizer slots are no longer what they were: only for a stage
 * that is built to be measured.
 */
export function gaugeStage(executor: StageExecutor, tensors: EngineTensors, workload: Workload): Gauge {
  const zeros = zerosOn(tensors);
  const mark = zeros({ shape: [1], dtype: "float32" });
  // A GPU goes on by itself after a call: what is copied from it comes after all that it was told to do.
  const finish = () => tensors.copyTo(mark, new Uint8Array(4));
  const times: Record<"F" | "B" | "W" | "U" | "host" | "copy", number[]> = {
    F: [],
    B: [],
    W: [],
    U: [],
    host: [],
    copy: [],
  };
  const timed = <T>(name: "F" | "B" | "W" | "U", body: () => T): T => {
    const engine = executor.engineMs;
    const start = performance.now();
    const result = body();
    finish();
    const wall = performance.now() - start;
    times[name].push(wall);
    times.host.push(wall - (executor.engineMs - engine));
    return result;
  };
  const size = workload.inputs[0]?.shape[0] ?? 1;
  const microBatch = { index: 0, step: 0, firstSample: 0, size, batchSize: size };
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const inputs = workload.inputs.map(zeros);
      const targets = workload.targets.map(zeros);
      timed("F", () => executor.forward(microBatch, inputs, targets, workload)).forEach((t) =>
        tensors.free(t)
      );
      timed("B", () => executor.backward(0, [])).forEach((t) => tensors.free(t));
      if (workload.split) timed("W", () => executor.weight([0]));
      timed("U", () => executor.update({ learningRate: 0, iteration: 0 }));
      executor.takeResults();
      times.copy.push(timeCopy(tensors));
    }
  } finally {
    tensors.free(mark);
    executor.reset();
  }
  const least = (name: keyof typeof times) => Math.min(...times[name].slice(1));
  return {
    F: least("F"),
    B: least("B"),
    W: workload.split ? least("W") : 0,
    U: least("U"),
    host: least("host"),
    copyPerByte: least("copy") / COPY_BYTES,
  };
}

function timeCopy(tensors: EngineTensors): number {
  const spec = { shape: [COPY_BYTES / 4], dtype: "float32" } as const;
  const value = zerosOn(tensors)(spec);
  const target = new Uint8Array(new SharedArrayBuffer(COPY_BYTES));
  tensors.copyTo(value, target); // the target's pages are faulted in
  const start = performance.now();
  tensors.copyTo(value, target);
  const ms = performance.now() - start;
  tensors.free(value);
  return ms;
}
