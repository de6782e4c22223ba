/** The kernels of the engine "wasm" where WebAssembly has what Stagger's own need. @module */
import assert from "node:assert/strict";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { testFullMemory } from "./wasm_kernel_cases.ts";

silenceBanner();
const { backend, kernels } = await startBackend();
assert.ok(kernels, "WebAssembly lacks what the kernels need");

testFullMemory(backend);
