/** The module that is committed, and the source that it is compiled from. @module */
import assert from "node:assert/strict";
import { compile } from "../../runtime/wasm/simd/build.ts";
import { MODULE } from "../../runtime/wasm/simd/module.ts";

Deno.test("the WebAssembly that is committed is what its source compiles to", async () => {
  assert.equal((await compile()).toBase64(), MODULE, 'run "deno task kernels"');
});
