/** Which engine a run gets where libtensorflow is missing, broken or too old: one line, or one error. */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { tf } from "../../deps.ts";
import { fetchEngine } from "../../cli/fetch_engine.ts";
import type { Progress } from "../../cli/progress.ts";
import { distribute } from "../../runtime/distribute.ts";
import { chooseEngine } from "../../runtime/engines.ts";
import { type DistributeOptions, resolveOptions } from "../../runtime/options.ts";
import { findTensorflow, searchTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { Trainer } from "../../runtime/trainer/trainer.ts";
import { modelGraph } from "../../stages/graph.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { denseNet } from "../trainer/models.ts";
import { installFakePip } from "./fake_pip.ts";
import { fakeLibrary, inFolder, writeCopy } from "./fake_tensorflow.ts";

silenceBanner();
await tf.setBackend("cpu");

const CC = "libtensorflow_cc.so.2";
const CUDA = { name: "cuda:0", kind: "cuda", index: 0 } as const;
const real = (() => {
  try {
    return findTensorflow();
  } catch {
    return undefined;
  }
})();
const inSystem = searchTensorflow({}).some(({ origin, outcome }) =>
  origin === "system" && outcome === "found"
);
const hasCompiler = (() => {
  try {
    return new Deno.Command("cc", { args: ["--version"], stdout: "null", stderr: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
})();

/** A test in an environment of its own: an empty cache, no Python, nothing named. */
function bareTest(name: string, body: (folder: string) => Promise<void>, ignore = false) {
  Deno.test({
    name,
    ignore: ignore || inSystem || Deno.build.os !== "linux",
    fn: () =>
      inFolder((folder) => ({
        STAGGER_TENSORFLOW: undefined,
        STAGGER_CACHE: join(folder, "cache"),
        LD_LIBRARY_PATH: undefined,
        PATH: join(folder, "bin"),
      }), body),
  });
}

/** Trains a step. @returns the engine that did, and the lines that a person was shown */
async function train(options: DistributeOptions = {}): Promise<{ engine: string; lines: string[] }> {
  const lines: string[] = [];
  const trainer = await distribute(denseNet(), {
    devices: ["cpu:0", "cpu:0"],
    partition: [1],
    ...options,
    notice: (line) => lines.push(line),
  });
  return { engine: await engineOf(trainer), lines };
}

async function engineOf(trainer: Trainer): Promise<string> {
  try {
    trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
    assert.ok(Number.isFinite(await trainer.trainOnBatch(tf.ones([8, 6]), tf.ones([8, 2]))));
    return trainer.engine;
  } finally {
    await trainer.dispose();
  }
}

const WASM = ': training with the slower engine "wasm"; ".*setup.*" fetches what is missing$';

/** Sees that `auto` trains on wasm after one line, and that "tensorflow" and a GPU are refused for the same reason. */
async function fallsBack(why: RegExp, stops: RegExp): Promise<void> {
  const { engine, lines } = await train();
  assert.match(engine, /^wasm /);
  assert.equal(lines.length, 1, lines.join("\n"));
  assert.match(lines[0]!, new RegExp(`^${why.source}${WASM}`));
  await assert.rejects(
    train({ engine: "tensorflow" }),
    new RegExp(
      `^Error: Cannot start engine "tensorflow": ${stops.source}; fetch it with ".*setup.*", or set`,
    ),
  );
}

function gpuIsRefused(message: RegExp): void {
  const lines: string[] = [];
  assert.throws(() => chooseEngine("auto", [CUDA], {}, (line) => lines.push(line)), message);
  assert.deepEqual(lines, []);
}

bareTest("without libtensorflow, auto trains on wasm after one line, and tensorflow is refused", async () => {
  await fallsBack(/Found no libtensorflow/, /found no libtensorflow/);
  gpuIsRefused(/^Error: Cannot start engine "tensorflow": found no libtensorflow/);
});

const BROKEN: Readonly<Record<string, readonly [bytes: Uint8Array<ArrayBuffer>, detail: string]>> = {
  "that is cut short": [fakeLibrary().slice(0, 1000), "has 1000 of 4096 bytes"],
  "that is text": [new TextEncoder().encode("<html>".padEnd(4096)), "is not a 64-bit ELF shared library"],
  "for another processor": [
    fakeLibrary({ arch: Deno.build.arch === "x86_64" ? "aarch64" : "x86_64" }),
    `is made for .*, this machine is ${Deno.build.arch}`,
  ],
};
for (const [what, [bytes, detail]] of Object.entries(BROKEN)) {
  bareTest(`a library ${what} is named, and auto trains on wasm`, async (folder) => {
    const copy = writeCopy(join(folder, "cache"), "cpu");
    Deno.writeFileSync(join(copy, "tensorflow", CC), bytes);
    const why = new RegExp(`libtensorflow in ${copy}, which is not whole: .*${CC} ${detail}`);
    await fallsBack(new RegExp(`Cannot use ${why.source}`), new RegExp(`cannot use ${why.source}`));
    gpuIsRefused(why);
  });
}

/** Puts libraries where setup would have put them. */
function install(folder: string, framework: string, cc: string): string {
  const directory = join(writeCopy(join(folder, "cache"), "cpu"), "tensorflow");
  const files: Record<string, number> = {};
  for (const [name, from] of [["libtensorflow_framework.so.2", framework], [CC, cc]] as const) {
    Deno.copyFileSync(from, join(directory, name));
    files[`tensorflow/${name}`] = Deno.statSync(join(directory, name)).size;
  }
  const manifest = { version: "2.21.0", build: "cpu", arch: Deno.build.arch, files };
  Deno.writeTextFileSync(join(directory, "..", "stagger.json"), JSON.stringify(manifest));
  return join(directory, CC);
}

bareTest(
  "a library of headers alone is told in the system's words, and auto trains on wasm",
  async (folder) => {
    writeCopy(join(folder, "cache"), "cpu");
    const why = /Cannot open .*libtensorflow_framework\.so\.2: .*/;
    await fallsBack(why, why);
  },
);

/** A shared library with these lines of C. */
function compile(folder: string, name: string, source: string): string {
  const file = join(folder, `${name}.c`);
  Deno.writeTextFileSync(file, source);
  const library = join(folder, name);
  const args = ["-shared", "-fPIC", "-o", library, file];
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
  assert.ok(new Deno.Command("cc", { args, env }).outputSync().success);
  return library;
}

const LIBRARIES: Readonly<Record<string, readonly [source: string, why: string]>> = {
  "that is not libtensorflow": ["int x;", "it is not libtensorflow, for it lacks TF_Version"],
  "that is too old": [
    'const char* TF_Version(void) { return "2.19.1"; }',
    "it is TensorFlow 2\\.19\\.1, expected 2\\.20 or later",
  ],
  "that lacks functions": [
    'const char* TF_Version(void) { return "3.1.0"; }',
    "it lacks the function TFE?_\\w+",
  ],
};
for (const [what, [source, why]] of Object.entries(LIBRARIES)) {
  bareTest(
    `a library ${what} is named, and auto trains on wasm`,
    async (folder) => {
      const built = compile(folder, `lib${basename(folder)}.so`, source);
      const library = install(folder, built, built);
      const line = new RegExp(`Cannot use ${library}: ${why}`);
      await fallsBack(line, line);
    },
    !hasCompiler,
  );
}

bareTest("a path that is named and wrong stops a run on any engine but wasm", async (folder) => {
  for (const engine of ["auto", "tensorflow"] as const) {
    Deno.env.set("STAGGER_TENSORFLOW", join(folder, "nowhere"));
    await assert.rejects(
      train({ engine }),
      /^TensorflowPathError: Cannot use STAGGER_TENSORFLOW=".*nowhere": /,
    );
    Deno.env.delete("STAGGER_TENSORFLOW");
    const tensorflow = { path: join(folder, "nowhere") };
    await assert.rejects(
      train({ engine, tensorflow }),
      /^TensorflowPathError: Cannot use tensorflow\.path ".*nowhere": /,
    );
  }
  Deno.env.set("STAGGER_TENSORFLOW", join(folder, "nowhere"));
  assert.match((await train({ engine: "wasm" })).engine, /^wasm /);
});

bareTest(
  "a path that is named and does not load stops a run: wasm does not take its place",
  async (folder) => {
    const built = compile(folder, `lib${basename(folder)}.so`, "int x;");
    const tensorflow = { path: join(install(folder, built, built), "..") };
    for (const engine of ["auto", "tensorflow"] as const) {
      await assert.rejects(
        train({ engine, tensorflow }),
        /^Error: Cannot start engine "tensorflow": Cannot use .*lacks TF_Version; fetch it with/,
      );
    }
  },
  !hasCompiler,
);

bareTest("the benchmark goes on without libtensorflow where pip reaches nothing", async (folder) => {
  const lines: string[] = [];
  const progress = { phase() {}, tick() {}, log: (line: string) => lines.push(line) } as unknown as Progress;
  const path = Deno.env.get("PATH");
  try {
    await fetchEngine("auto", progress);
    assert.match(lines.join("\n"), /^Cannot fetch libtensorflow: there is no Python 3: install it.*$/);
    await assert.rejects(fetchEngine("tensorflow", progress), /there is no Python 3/);
    Deno.env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    for (const [name, value] of Object.entries(installFakePip(folder, "offline"))) Deno.env.set(name, value);
    lines.length = 0;
    await fetchEngine("auto", progress);
    assert.match(lines.join("\n"), /^Cannot fetch tensorflow\S*: pip cannot reach .*$/);
    await fetchEngine("wasm", progress);
    assert.equal(lines.length, 1);
  } finally {
    Deno.env.set("PATH", path!);
    for (const name of ["PYTHONPATH", "FAKE_PIP", "FAKE_PIP_MODE"]) Deno.env.delete(name);
  }
});

Deno.test({
  name: "a libtensorflow that works is taken without a line (needs libtensorflow)",
  ignore: real === undefined,
  sanitizeResources: false,
  sanitizeOps: false,
  fn: async () => {
    const { engine, lines } = await train();
    assert.match(engine, /^tensorflow 2\./);
    assert.deepEqual(lines, []);
  },
});

Deno.test("the lack of SIMD is told once, not by each worker, and training works", async () => {
  const lines: string[] = [];
  const model = denseNet();
  const graph = modelGraph(model);
  const options = resolveOptions({
    engine: "wasm",
    devices: ["cpu:0", "cpu:0"],
    partition: [1],
    notice: (line) => lines.push(line),
  }, graph);
  const engine = await engineOf(
    new Trainer(model, graph, { ...options, engine: { name: "wasm", simd: false } }),
  );
  assert.match(engine, /^wasm .* without SIMD/);
  assert.deepEqual(lines, ['Engine "wasm": WebAssembly has no SIMD here, training is several times slower']);
  const usual = await train({ engine: "wasm" });
  assert.doesNotMatch(usual.engine, /without SIMD/);
  assert.deepEqual(usual.lines, []);
});

Deno.test("wasm tells that its files may not be read", async () => {
  const folder = fileURLToPath(new URL("../../", import.meta.url));
  const start = new URL("../../runtime/wasm/start_backend.ts", import.meta.url).href;
  const child = `import { startBackend } from "${start}";
    await startBackend().catch((error) => console.log(error.message));`;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--no-check", `--allow-read=${folder}`, "--allow-env"],
      `data:application/typescript,${encodeURIComponent(child)}`,
    ],
    stdin: "null",
  }).output();
  assert.match(
    new TextDecoder().decode(stdout),
    /^Cannot start engine "wasm": .*tfjs-backend-wasm(-simd)?\.wasm may not be read; allow it: deno run --allow-read\n$/,
    new TextDecoder().decode(stderr),
  );
});
