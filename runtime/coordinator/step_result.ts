/** What a step came to, from what every worker reports. @module */
import type { StageConfig } from "../../stages/stage_config.ts";
import type { Prediction, StepReport, TraceEvent } from "../protocol.ts";

/** One step's outcome. */
export interface StepResult {
  /** Loss, the layers' penalties included while training, then metrics. */
  readonly values: number[];
  /** What each stage did when, if it was asked for. */
  readonly trace: readonly (readonly TraceEvent[])[];
  /** From the order to run to the last stage's end, in milliseconds. */
  readonly wallMs: number;
  /** Per output of the model, per micro-batch. */
  readonly predictions: readonly (readonly Prediction[])[];
}

/** Joins the reports. @param reports of the first replica's stages, then of the next one's */
export function mergeReports(
  reports: readonly StepReport[],
  stages: readonly StageConfig[],
  wallMs: number,
): StepResult {
  const length = Math.max(1, ...reports.map(({ results }) => results.length));
  const values = Array.from({ length }, (_, i) => reports.reduce((sum, r) => sum + (r.results[i] ?? 0), 0));
  // Penalties are of weights: every replica has the same.
  values[0]! += reports.slice(0, stages.length).reduce((sum, { penalty }) => sum + penalty, 0);
  const predictions: Prediction[][] = [];
  stages.forEach(({ modelOutputs }, s) => {
    const replicas = reports.filter((_, worker) => worker % stages.length === s);
    modelOutputs.forEach(({ output }, i) =>
      predictions[output] = inTurn(replicas.map(({ predictions }) => predictions[i] ?? []))
    );
  });
  return { values, trace: reports.map(({ trace }) => trace), wallMs, predictions };
}

/** What replicas have made of each micro-batch, in the order of the samples. */
function inTurn(replicas: readonly (readonly Prediction[])[]): Prediction[] {
  const most = Math.max(...replicas.map(({ length }) => length));
  // A replica without a share of the last micro-batches has made fewer.
  return Array.from({ length: most }, (_, i) => replicas.flatMap((made) => made[i] ?? [])).flat();
}
