/** Tests of whole processes: how they end with the engine loaded, what they print, and wrong libraries. @module */
import assert from "node:assert/strict";
import { join } from "node:path";
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { openTensorflow } from "../../runtime/tensorflow/library/library.ts";

const found = findTensorflow();
const ignore = found === undefined;
const without = ignore ? ' (no libtensorflow: "deno task setup")' : "";

/** Runs the child. */
async function leave(
  way: string,
  path = found!.directory,
): Promise<{ code: number; signal: string | null; stdout: string; stderr: string }> {
  const child = new URL("./process_child.ts", import.meta.url);
  const allowed = ["read", "env", "ffi", "sys", "run"].map((what) => `--allow-${what}`);
  const { code, signal, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--quiet", ...allowed, child.href, way],
    env: { STAGGER_TENSORFLOW: path, NO_COLOR: "1" },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, signal, stdout: text(stdout), stderr: text(stderr) };
}

Deno.test({
  name:
    `a process with three computing threads ends as it wants to, without a word of the engine's${without}`,
  ignore,
  fn: async (t) => {
    const [end, exit, error] = await Promise.all(["end", "exit", "error"].map((way) => leave(way)));
    await t.step("at its end", () => {
      assert.deepEqual(end, { code: 0, signal: null, stdout: "", stderr: "" });
    });
    await t.step("by Deno.exit(0) while workers compute", () => {
      assert.deepEqual(exit, { code: 0, signal: null, stdout: "", stderr: "" });
    });
    await t.step("by an uncaught error, which is all that it prints", () => {
      const { stderr, ...rest } = error!;
      assert.deepEqual(rest, { code: 1, signal: null, stdout: "" });
      const [first, ...others] = stderr.split("\n");
      assert.equal(first, "error: Uncaught (in promise) Error: Left on purpose");
      // Deno shows the line and the stack.
      const foreign = others.filter((line) => !/^if \(way === "error"\)|^\s|^$/.test(line));
      assert.deepEqual(foreign, []);
    });
  },
});

Deno.test({
  name: `a wrong path of the library ends a process with an error that names it${without}`,
  ignore,
  fn: async () => {
    const { stderr, stdout, code, signal } = await leave("end", join(Deno.cwd(), "nowhere"));
    assert.deepEqual({ stdout, code, signal }, { stdout: "", code: 1, signal: null });
    assert.match(
      stderr,
      /TensorflowPathError: Cannot use STAGGER_TENSORFLOW=".*nowhere": .*nowhere\/libtensorflow_cc\.so\.2 is missing/,
    );
  },
});

Deno.test({
  name: "a file that is no library is refused with its path and what the system says",
  ignore: Deno.build.os !== "linux",
  fn: () => {
    const folder = Deno.makeTempDirSync();
    try {
      const path = join(folder, "libtensorflow_framework.so.2");
      Deno.writeTextFileSync(path, "not a library, and long enough to be read as one: ".repeat(10));
      const missing = join(folder, "libtensorflow_cc.so.2");
      assert.throws(() => openTensorflow({ cc: missing, framework: path }), (error: Error) => {
        assert.ok(error.message.startsWith(`Cannot open ${path}: `), error.message);
        assert.match(error.message, /invalid ELF header/);
        return true;
      });
      assert.throws(() => openTensorflow({ cc: path, framework: missing }), (error: Error) => {
        assert.ok(error.message.startsWith(`Cannot open ${missing}: `), error.message);
        assert.match(error.message, /No such file/);
        return true;
      });
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  },
});
