/**
 * The engine "wasm" in a worker: what runs where no libtensorflow is found. It comes from npm alone.
 * @module
 */
import type { WorkerEngineHandle } from "../worker/engine_handle.ts";
import { startBackend } from "./start_backend.ts";
import { wasmSource } from "./random.ts";
import { WasmStage } from "./wasm_stage.ts";
import { WasmTensors } from "./wasm_tensors.ts";

/** Said once, not by each worker. */
function withoutKernels(simd: boolean): string {
  return `Engine "wasm": WebAssembly has no ${
    simd ? "relaxed " : ""
  }SIMD here, training is several times slower`;
}

/**
 * Starts it, for the device that the worker is bound to.
 *
 * @param options for tests alone
 * @throws {Error} if it does not start
 */
export async function startWasm(
  deviceName: string,
  options: { memoryLimit?: number; simd?: boolean } = {},
): Promise<WorkerEngineHandle> {
  const device = await startBackend(options);
  const { version, simd, kernels } = device;
  const tensors = new WasmTensors(device.backend);
  return {
    description: `wasm ${version}${simd ? "" : " without SIMD"} on ${deviceName}`,
    ...(kernels ? {} : { notice: withoutKernels(simd) }),
    tensors,
    captures: false,
    execute(model, { seed, optimizer, clipping }) {
      const random = (step: number, firstSample: number) => wasmSource(device, { seed, step, firstSample });
      return { executor: new WasmStage(model, optimizer, random, device, clipping), tensors };
    },
  };
}
