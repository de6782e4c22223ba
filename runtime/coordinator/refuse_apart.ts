/** Finds replicas that have come apart. @module */
import type { StageConfig } from "../../stages/stage_config.ts";

/**
 * Compares what every worker's weights come to, those of each stage's first replica with its other ones.
 *
 * @param checks a number for each weight, by worker
 * @throws {Error} naming the weight, if one has other bits
 */
export function refuseApart(checks: readonly (readonly number[])[], stages: readonly StageConfig[]): void {
  checks.forEach((own, worker) => {
    const stage = worker % stages.length;
    const apart = own.findIndex((check, i) => check !== checks[stage]![i]);
    if (apart < 0) return;
    const { layer, index } = stages[stage]!.weights[apart]!;
    throw new Error(
      `Replicas 0 and ${
        Math.floor(worker / stages.length)
      } have come apart: weight ${index} of layer "${layer}" ` +
        `has other bits after the step`,
    );
  });
}
