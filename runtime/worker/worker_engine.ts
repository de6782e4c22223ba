/** An engine as a worker sees it: it starts once, and makes executors for stages. @module */
import type { EngineTensors, StageExecutor } from "../../stages/executor.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import { pinToCore } from "../machine/affinity.ts";
import type { StageSetup, WorkerStart } from "../protocol.ts";

/** A started engine. */
export interface WorkerEngineHandle {
  /** Name and version, such as "tensorflow 2.21.0". */
  readonly description: string;
  readonly tensors: EngineTensors;
  /** Whether stages can be captured. */
  readonly captures: boolean;
  /** An executor for a stage. @param capture whether to capture it */
  execute(
    model: StageModel,
    setup: StageSetup,
    capture: boolean,
  ): { executor: StageExecutor; tensors: EngineTensors };
}

/** Starts the engine that the coordinator chose, on the device that it chose. */
export async function startEngine({ engine, device }: WorkerStart): Promise<WorkerEngineHandle> {
  // Before the engine: the threads that it starts inherit the core.
  if (device.kind === "cpu") pinToCore(device.index);
  if (engine.name === "wasm") {
    const { startWasm } = await import("../wasm/wasm_engine.ts");
    return await startWasm(device.name);
  }
  const { startTensorflow } = await import("../tensorflow/tensorflow_engine.ts");
  return await startTensorflow(engine, device);
}
