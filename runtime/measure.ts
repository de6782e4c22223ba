/** Times a stage's F, B and W on its device, with inputs of zeros. @module */
import { align, byteLengthOf, type TensorSpec } from "../ring/dtype.ts";
import type { EngineTensors, StageExecutor, Value, Workload } from "../stages/executor.ts";
import type { StageTimes } from "./schedules/simulate.ts";

/** Rounds measured, after one that warms up. */
const ROUNDS = 3;

/** Milliseconds per micro-batch. */
export interface MeasuredTimes extends StageTimes {
  /** W over several micro-batches in one call, per micro-batch, by their number. */
  readonly batched: Readonly<Record<number, number>>;
}

/** Measures a stage. Gradients that it accumulates on the way are dropped. */
export function measureStage(
  executor: StageExecutor,
  tensors: EngineTensors,
  workload: Workload,
): MeasuredTimes {
  const zeros = (spec: TensorSpec): Value => {
    const memory = new SharedArrayBuffer(align(byteLengthOf(spec)) || 64);
    return tensors.receive(spec, new Uint8Array(memory, 0, byteLengthOf(spec))).value;
  };
  const times: Record<string, number[]> = {};
  const timed = <T>(name: string, body: () => T): T => {
    const start = performance.now();
    const result = body();
    (times[name] ??= []).push(performance.now() - start);
    return result;
  };
  const size = workload.inputs[0]?.shape[0] ?? 1;
  const forward = (index: number, name: string) => {
    const microBatch = { index, step: 0, firstSample: 0, size, batchSize: size };
    const inputs = workload.inputs.map(zeros);
    const targets = workload.targets.map(zeros);
    const outputs = timed(name, () => executor.forward(microBatch, inputs, targets, workload));
    const specs = outputs.map((value) => tensors.specOf(value));
    outputs.forEach((value) => tensors.free(value));
    return specs;
  };
  const backward = (index: number, specs: readonly TensorSpec[], name: string) => {
    const gradients = specs.map(zeros);
    timed(name, () => executor.backward(index, gradients)).forEach((value) => tensors.free(value));
  };
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      backward(0, forward(0, "F"), "B");
      if (workload.split) timed("W", () => executor.weight([0]));
    }
    for (const k of workload.weightBatches) {
      if (k < 2) continue;
      for (let round = 0; round < 2; round++) {
        const indices = Array.from({ length: k }, (_, i) => i);
        for (const index of indices) backward(index, forward(index, "other"), "other");
        timed(`W${k}`, () => executor.weight(indices));
      }
    }
  } finally {
    executor.reset();
  }
  const median = (name: string) => {
    const rounds = (times[name] ?? [0]).slice(1).sort((a, b) => a - b);
    return rounds[rounds.length >> 1] ?? 0;
  };
  const batched: Record<number, number> = {};
  for (const k of workload.weightBatches) if (k > 1) batched[k] = median(`W${k}`) / k;
  return { F: median("F"), B: median("B"), W: median("W"), batched };
}
