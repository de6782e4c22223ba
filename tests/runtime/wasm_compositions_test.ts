/** The kernels of the engine "wasm" where WebAssembly has no SIMD: compositions of the backend's own. @module */
import assert from "node:assert/strict";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { testFullMemory } from "./wasm_kernel_cases.ts";

silenceBanner();
const { backend, kernels } = await startBackend({ ownKernels: false });
assert.equal(kernels, undefined);

testFullMemory(backend);
