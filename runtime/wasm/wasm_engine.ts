/**
 * The engine "wasm" in a worker: what runs where no libtensorflow is found. It comes from npm alone.
 * @module
 */
import type { WorkerEngineHandle } from "../worker/engine_handle.ts";
import { startBackend } from "./start_backend.ts";
import { wasmSource } from "./random.ts";
import { WasmStage } from "./wasm_stage.ts";
import { WasmTensors } from "./wasm_tensors.ts";

/**
 * Starts it, for the device that the worker is bound to.
 *
 * @param memoryLimit bytes that it may use, fewer than there are: for tests alone
 * @throws {Error} if it does not start
 */
export async function startWasm(deviceName: string, memoryLimit?: number): Promise<WorkerEngineHandle> {
  const device = await startBackend({ memoryLimit });
  const { version, simd } = device;
  if (!simd) {
    console.error(
      `Engine "wasm" on ${deviceName}: WebAssembly has no SIMD here, training is several times slower`,
    );
  }
  const tensors = new WasmTensors(device.backend);
  return {
    description: `wasm ${version}${simd ? "" : " without SIMD"} on ${deviceName}`,
    tensors,
    captures: false,
    execute(model, { seed, optimizer }) {
      const random = (step: number, firstSample: number) => wasmSource(device, { seed, step, firstSample });
      return { executor: new WasmStage(model, optimizer, random, device), tensors };
    },
  };
}
