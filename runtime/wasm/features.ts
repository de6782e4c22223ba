/** What WebAssembly offers here to the engine "wasm". @module */
import { MODULE } from "./simd/module.ts";

/** Instruction sets beyond the first version. */
export interface WasmFeatures {
  /** Vectors of 128 bits. */
  readonly simd: boolean;
  /** Relaxed ones, fused multiplication and addition among them: Stagger's own kernels need them. */
  readonly relaxedSimd: boolean;
}

// A module of one function that makes a vector: (module (func (result v128) i32.const 0 i8x16.splat i8x16.popcnt))
const VECTOR = "AGFzbQEAAAABBQFgAAF7AwIBAAoKAQgAQQD9D/1iCw==";

/** Asks the runtime. */
export function wasmFeatures(): WasmFeatures {
  const runs = (module: string) => WebAssembly.validate(Uint8Array.fromBase64(module));
  return { simd: runs(VECTOR), relaxedSimd: runs(MODULE) };
}
