/** Tests of the gradients of the engine "wasm" where WebAssembly has no SIMD. @module */
import assert from "node:assert/strict";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import { testGradients, testValues } from "./gradients.ts";

const { kernels } = await startBackend({ ownKernels: false });
assert.equal(kernels, undefined);
registerLayers();

testValues();
testGradients("wasm");
