/** An engine as a worker sees it: it starts once, and makes executors for stages. @module */
import type { EngineTensors, SegmentExecutor } from "../../stages/executor.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import type { StageSetup } from "../protocol.ts";

/** A started engine. */
export interface WorkerEngineHandle {
  /** Name and version, such as "tensorflow 2.21.0". */
  readonly description: string;
  /** A line that a person should read. */
  readonly notice?: string;
  readonly tensors: EngineTensors;
  /** Whether stages can be captured. */
  readonly captures: boolean;
  /** An executor for a stage. @param capture whether to capture it */
  execute(
    model: StageModel,
    setup: StageSetup,
    capture: boolean,
  ): { executor: SegmentExecutor; tensors: EngineTensors };
}
