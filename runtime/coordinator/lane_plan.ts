/** What runs where for one way of running. @module */
import { describePlace } from "../errors.ts";
import { type Plan, routePlans, stagePlan } from "../plan.ts";
import type { ReadyLane } from "./ready_lane.ts";

/** The plan of a lane. */
export function planOf({ plan, workloads, capacities }: ReadyLane): Plan {
  const { shape, microBatches, microBatchSize, shareSize, stages } = plan;
  const { devices, replicas } = workloads.options;
  return {
    microBatches,
    microBatchSize,
    stages: devices.map(({ name }, worker) => {
      const replica = replicas > 1 ? Math.floor(worker / stages.length) : undefined;
      const stage = worker % stages.length;
      return stagePlan(stages[stage]!, describePlace({ stage, replica }).toLowerCase(), name);
    }),
    routes: routePlans(stages, workloads.specs(shape, shareSize), capacities),
  };
}
