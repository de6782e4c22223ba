/** Times a stage on its device, with inputs of zeros: F, B and W as a whole, or layer by layer. @module */
import { byteLengthOf, type TensorSpec } from "../ring/dtype.ts";
import type { LayerCost } from "../stages/balance.ts";
import type { EngineTensors, StageExecutor, Value, Workload } from "../stages/executor.ts";
import type { StageTimes } from "./schedules/simulate.ts";

/** Most rounds measured, after one that warms up. */
const ROUNDS = 3;
/** Time after which no further round begins, in milliseconds; the first rounds fault in their memory. */
const BUDGET_MS = 2500;

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
  outputGradients: readonly TensorSpec[],
): MeasuredTimes {
  const zeros = zerosOn(tensors);
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
    timed(name, () => executor.forward(microBatch, inputs, targets, workload)).forEach((t) =>
      tensors.free(t)
    );
  };
  const backward = (index: number, name: string) => {
    const gradients = outputGradients.map(zeros);
    timed(name, () => executor.backward(index, gradients)).forEach((t) => tensors.free(t));
  };
  try {
    const start = performance.now();
    for (let round = 0; round <= ROUNDS; round++) {
      if (round > 1 && performance.now() - start > BUDGET_MS) break;
      forward(0, "F");
      backward(0, "B");
      if (workload.split) timed("W", () => executor.weight([0]));
    }
    const indices = Array.from({ length: Math.max(0, ...workload.weightBatches) }, (_, i) => i);
    for (const index of indices) {
      forward(index, "other");
      backward(index, "other");
    }
    const middle = performance.now();
    for (let round = 0; round <= ROUNDS && indices.length > 0; round++) {
      if (round > 1 && performance.now() - middle > BUDGET_MS) break;
      // Side by side, and the ratio: the machine may be slower by now than it was for W alone.
      let single = 0;
      for (const index of indices) {
        const start = performance.now();
        executor.weight([index], true);
        single += performance.now() - start;
      }
      for (const k of workload.weightBatches) {
        const start = performance.now();
        executor.weight(indices.slice(0, k), true);
        (times[`ratio ${k}`] ??= []).push((performance.now() - start) / k / (single / indices.length));
      }
    }
  } finally {
    executor.reset();
  }
  const W = medianAfterFirst(times["W"]);
  const batched: Record<number, number> = {};
  for (const k of workload.weightBatches) batched[k] = W * medianAfterFirst(times[`ratio ${k}`]);
  return { F: medianAfterFirst(times["F"]), B: medianAfterFirst(times["B"]), W, batched };
}

/** The median without the first, which warms up; 0 of none. */
function medianAfterFirst(values: readonly number[] = []): number {
  const sorted = values.slice(1).sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}

/** Measures each layer of a stage, in milliseconds per micro-batch. */
export function profileStage(
  executor: StageExecutor,
  tensors: EngineTensors,
  workload: Workload,
  outputGradients: readonly TensorSpec[],
): Readonly<Record<string, LayerCost>> {
  const zeros = zerosOn(tensors);
  const inputs = () => ({
    x: workload.inputs.map(zeros),
    targets: workload.targets.map(zeros),
    outputGradients: outputGradients.map(zeros),
  });
  return executor.profile(workload, inputs, ROUNDS, BUDGET_MS);
}

/** Makes tensors of zeros. */
export function zerosOn(tensors: EngineTensors): (spec: TensorSpec) => Value {
  return (spec) => {
    const bytes = byteLengthOf(spec);
    return tensors.receive(spec, new Uint8Array(new SharedArrayBuffer(Math.max(bytes, 64)), 0, bytes)).value;
  };
}
