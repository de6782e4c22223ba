/** Starts a worker's engine. @module */
import { EngineError } from "../errors.ts";
import { pinToCore } from "../machine/affinity.ts";
import type { WorkerStart } from "../protocol.ts";
import type { WorkerEngineHandle } from "./engine_handle.ts";

/**
 * Starts the engine that the coordinator chose, on the device that it chose.
 *
 * @throws {EngineError} if it does not start: never does another take its place here
 */
export async function startEngine({ engine, device }: WorkerStart): Promise<WorkerEngineHandle> {
  // Before the engine: the threads that it starts inherit the core.
  if (device.kind === "cpu") pinToCore(device.index);
  try {
    if (engine.name === "wasm") {
      const { startWasm } = await import("../wasm/wasm_engine.ts");
      return await startWasm(device.name, engine);
    }
    const { startTensorflow } = await import("../tensorflow/tensorflow_engine.ts");
    return await startTensorflow(engine, device);
  } catch (error) {
    throw new EngineError((error as Error).message, { cause: error });
  }
}
