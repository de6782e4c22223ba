/** Starts a worker's engine. @module */
import { pinToCore } from "../machine/affinity.ts";
import type { WorkerStart } from "../protocol.ts";
import type { WorkerEngineHandle } from "./engine_handle.ts";

/** Starts the engine that the coordinator chose, on the device that it chose. */
export async function startEngine({ engine, device }: WorkerStart): Promise<WorkerEngineHandle> {
  // Before the engine: the threads that it starts inherit the core.
  if (device.kind === "cpu") pinToCore(device.index);
  if (engine.name === "wasm") {
    const { startWasm } = await import("../wasm/wasm_engine.ts");
    return await startWasm(device.name, engine.memoryLimit);
  }
  const { startTensorflow } = await import("../tensorflow/tensorflow_engine.ts");
  return await startTensorflow(engine, device);
}
