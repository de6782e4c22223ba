/** What reaches standard error while libtensorflow is loaded: all that is not the library's own. @module */
import assert from "node:assert/strict";
import { symbolOf } from "../../runtime/tensorflow/library/elf.ts";
import { found } from "./engine.ts";

const ignore = found === undefined;
const without = ignore ? ' (no libtensorflow: "deno task setup")' : "";

async function load(logLevel?: string): Promise<{ stdout: string; lines: string[] }> {
  const child = new URL("./log_lines_child.ts", import.meta.url).href;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", "--quiet", "--allow-all", child],
    env: { NO_COLOR: "1", ...(logLevel ? { TF_CPP_MIN_LOG_LEVEL: logLevel } : {}) },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trimEnd();
  assert.equal(code, 0, text(stderr));
  return { stdout: text(stdout), lines: text(stderr).split("\n") };
}

Deno.test({
  name: `workers that load the library at once take no line from standard error${without}`,
  ignore,
  fn: async () => {
    const { stdout, lines } = await load();
    const count = Number(stdout);
    assert.ok(count > 10, `${count} lines were written while the library was loaded`);
    const expected = [...Array.from({ length: count }, (_, i) => `line ${i}`), "end"];
    assert.deepEqual(lines.toSorted(), expected.toSorted());
    assert.equal(lines.at(-1), "end", "standard error is itself again");
  },
});

Deno.test({
  name: `TF_CPP_MIN_LOG_LEVEL=0 shows the library's own lines${without}`,
  ignore,
  fn: async () => {
    const { lines } = await load("0");
    assert.ok(lines.some((line) => /^I\d{4} .*oneDNN/.test(line)), lines.join("\n"));
  },
});

Deno.test({
  name: `symbolOf() finds a whole name in the library's symbols${without}`,
  ignore,
  fn: () => {
    assert.equal(symbolOf(found!.cc, /TF_NewS\w+us/), "TF_NewStatus");
    assert.equal(symbolOf(found!.cc, /F_NewStatus/), undefined, "a part of a name is none");
    assert.equal(symbolOf(found!.cc, /TF_NoSuchFunction/), undefined);
    assert.match(symbolOf(found!.framework, /_ZN4absl\w*14SetMinLogLevelE\w+/) ?? "none", /SetMinLogLevel/);
  },
});

Deno.test("symbolOf() finds nothing in what is no library", () => {
  assert.equal(symbolOf(Deno.execPath() + ".missing", /main/), undefined);
  const path = Deno.makeTempFileSync();
  try {
    Deno.writeTextFileSync(path, "\0main\0".repeat(100));
    assert.equal(symbolOf(path, /main/), undefined);
  } finally {
    Deno.removeSync(path);
  }
});
