/** The conformance run's command line: defaults as documented, and bad values refused before any work. */
import assert from "node:assert/strict";
import { ENGINES, HELP, readOptions } from "../../conformance/options.ts";

Deno.test("without options the whole suite runs on tensorflow, both passes", () => {
  assert.deepEqual(readOptions([]), {
    engine: "tensorflow",
    filter: [],
    capture: true,
    stock: false,
    json: undefined,
    help: false,
  });
});

Deno.test("wasm runs beside what is published, without a second pass", () => {
  const { engine, capture, stock } = readOptions(["--engine", "wasm"]);
  assert.deepEqual([engine, capture, stock], ["wasm", false, true]);
  assert.equal(readOptions(["--engine=wasm", "--no-stock"]).stock, false);
  assert.equal(readOptions(["--no-capture"]).capture, false);
});

Deno.test("several filters are taken as they stand", () => {
  assert.deepEqual(readOptions(["--filter", "conv2d ", "--filter", "gradient"]).filter, [
    "conv2d ",
    "gradient",
  ]);
});

for (
  const [args, message] of [
    [["--engine", "webgpu"], /^Cannot use --engine webgpu: expected one of tensorflow, wasm$/],
    [["--filter", ""], /^Cannot use --filter "": expected a part of a spec's name/],
    [["--json", ""], /^Cannot use --json "": expected the path of a file$/],
    [["--no-stock"], /^Cannot use --no-stock with engine tensorflow: leave it out/],
    [["--engine", "wasm", "--no-capture"], /^Cannot use --no-capture with engine wasm/],
    [["--speed", "1"], /--speed.*see --help$/],
    [["--engine"], /--engine.*see --help$/],
    [["conv2d"], /conv2d.*see --help$/],
  ] as [string[], RegExp][]
) {
  Deno.test(`"${args.join(" ")}" is refused`, () => {
    assert.throws(
      () => readOptions(args),
      ({ message: text }: Error) => message.test(text) || assert.fail(text),
    );
  });
}

Deno.test("--help knows every option and every engine", () => {
  for (const option of ["--engine", "--filter", "--no-capture", "--no-stock", "--json", "--help"]) {
    assert.ok(HELP.includes(option), option);
  }
  for (const engine of ENGINES) assert.ok(HELP.includes(engine), engine);
});
