/** `deno task conformance` as a command: its exit codes, and what goes where. */
import assert from "node:assert/strict";
import { conformance } from "./task.ts";

Deno.test("a bad option ends the command with code 2 and one line of error", async () => {
  assert.deepEqual(await conformance(["--engine", "webgpu"]), {
    code: 2,
    stdout: "",
    stderr: "Cannot use --engine webgpu: expected one of tensorflow, wasm\n",
  });
});

Deno.test("a file that cannot be written is refused before any spec runs", async () => {
  const { code, stdout, stderr } = await conformance(["--engine", "wasm", "--json", "/proc/nothing/x.json"]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /Cannot write to --json \/proc\/nothing\/x.json: .*; give a file that may be written/);
  assert.doesNotMatch(stderr, /spec "/);
});

Deno.test("a filter that no spec answers to is an error", async () => {
  const { code, stdout, stderr } = await conformance([
    "--engine",
    "wasm",
    "--no-stock",
    "--filter",
    "conv9d",
  ]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /No spec has "conv9d" in its name/);
});
