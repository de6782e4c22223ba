import assert from "node:assert/strict";
import { join } from "node:path";
import { copyFault } from "../../runtime/tensorflow/library/cache.ts";
import { findPython } from "../../runtime/tensorflow/library/python.ts";
import { cudaRequirements } from "../../runtime/tensorflow/setup/setup.ts";
import { progressPrinter } from "../../runtime/tensorflow/setup/progress.ts";
import { installFakePip, installPython, pipCalls, pipProcess } from "./fake_pip.ts";
import { alive, ended, exists, filesBelow, names, run, start, until } from "./setup_process.ts";
import { inFolder, writeCopy, writePair, writeText } from "./fake_tensorflow.ts";

const works = Deno.build.os === "linux" && findPython() !== undefined;

/** A test in a folder of its own, with this mode of the fake pip. */
function setupTest(
  name: string,
  mode: string,
  body: (folder: string, env: Record<string, string>) => Promise<void>,
) {
  Deno.test({
    name,
    ignore: !works,
    fn: () => inFolder(() => ({}), (folder) => body(folder, installFakePip(folder, mode))),
  });
}

const copyIn = (folder: string, build = "cpu") => join(folder, "cache", `libtensorflow-2.21.0-${build}`);

setupTest("setup fetches the libraries and licences", "", async (folder, env) => {
  const { code, stdout, stderr } = await run(folder, ["--strict"], env);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /^Fetching tensorflow.*\n(?:.*50% of 300 MB\n)?Unpacking .*\nlibtensorflow \(cpu\) is ready in .*\n$/,
  );
  const copy = copyIn(folder);
  assert.equal(copyFault(copy), undefined);
  assert.deepEqual(filesBelow(copy), [
    "stagger.json",
    "tensorflow/THIRD_PARTY_NOTICES.txt",
    "tensorflow/include/LICENSE",
    "tensorflow/libtensorflow_cc.so.2",
    "tensorflow/libtensorflow_framework.so.2",
    "x-1.dist-info/METADATA",
  ]);
  assert.deepEqual(names(join(folder, "cache")), [".setup.lock", "libtensorflow-2.21.0-cpu"]);
  assert.ok(!exists(join(folder, "escaped")));
  const [call] = pipCalls(folder);
  assert.match(call!, /^download --no-deps --only-binary=:all: .*--abi cp311 /);
  assert.match(call!, new RegExp(`--platform manylinux_2_27_${Deno.build.arch} `));
  assert.match(call!, Deno.build.arch === "x86_64" ? / tensorflow-cpu==2\.21\.0$/ : / tensorflow==2\.21\.0$/);
});

setupTest("setup does and prints nothing when a whole copy is there", "", async (folder, env) => {
  writeCopy(join(folder, "cache"), "cpu");
  const nothing = { ...env, PATH: join(folder, "bin") }; // not even Python is looked for
  assert.deepEqual(await run(folder, ["--strict"], nothing), { code: 0, stdout: "", stderr: "" });
  assert.deepEqual(pipCalls(folder), []);
  assert.deepEqual(names(join(folder, "cache")), ["libtensorflow-2.21.0-cpu"]);
});

setupTest("setup --force replaces a whole copy", "", async (folder, env) => {
  const copy = writeCopy(join(folder, "cache"), "cpu");
  writeText(join(copy, "old"), "");
  assert.equal((await run(folder, ["--strict", "--force"], env)).code, 0);
  assert.equal(copyFault(copy), undefined);
  assert.ok(!exists(join(copy, "old")));
  assert.deepEqual(names(join(folder, "cache")), [".setup.lock", "libtensorflow-2.21.0-cpu"]);
});

setupTest("setup replaces a copy with a truncated library", "", async (folder, env) => {
  const copy = writeCopy(join(folder, "cache"), "cpu");
  Deno.truncateSync(join(copy, "tensorflow", "libtensorflow_cc.so.2"), 1000);
  assert.equal((await run(folder, ["--strict"], env)).code, 0);
  assert.equal(copyFault(copy), undefined);
  assert.equal(pipCalls(folder).length, 1);
});

setupTest("setup killed while it downloads leaves no copy, and its pip ends", "hang", async (folder, env) => {
  const child = start(folder, ["--build", "cpu"], env);
  await until("pip", () => pipProcess(folder) !== undefined);
  const pip = pipProcess(folder)!;
  child.kill("SIGKILL");
  await child.output();
  assert.equal(copyFault(copyIn(folder)), "is missing");
  await until("pip to end", () => !alive(pip));
  assert.equal(names(join(folder, "cache")).length, 2); // the lock and what is left
  const { code, stderr } = await run(folder, ["--strict"], { ...env, FAKE_PIP_MODE: "" });
  assert.equal(code, 0, stderr);
  assert.ok(!stderr.includes("Waiting"), stderr); // its lock has gone with it
  assert.equal(copyFault(copyIn(folder)), undefined);
  assert.deepEqual(names(join(folder, "cache")), [".setup.lock", "libtensorflow-2.21.0-cpu"]);
});

setupTest("setup killed while it unpacks leaves no copy", "large", async (folder, env) => {
  const child = start(folder, ["--build", "cpu"], env);
  const cache = join(folder, "cache");
  const staged = () => names(cache).filter((name) => name.startsWith(".setup-"))[0] ?? "none";
  // The first library is there, the second is not.
  await until("unpacking", () => exists(join(cache, staged(), "copy", "tensorflow", "LICENSE")));
  child.kill("SIGKILL");
  await child.output();
  assert.ok(exists(join(cache, staged(), "copy", "tensorflow", "libtensorflow_cc.so.2")));
  assert.equal(copyFault(copyIn(folder)), "is missing");
  assert.equal((await run(folder, ["--strict"], { ...env, FAKE_PIP_MODE: "" })).code, 0);
  assert.deepEqual(names(cache), [".setup.lock", "libtensorflow-2.21.0-cpu"]);
});

setupTest("setup stops and clears away on an interrupt", "hang", async (folder, env) => {
  const child = start(folder, ["--build", "cpu"], env);
  await until("pip", () => pipProcess(folder) !== undefined);
  const pip = pipProcess(folder)!;
  const interrupted = performance.now();
  child.kill("SIGINT");
  const { code, stderr } = await ended(child);
  assert.ok(performance.now() - interrupted < 10_000, "Waited for pip instead of ending it");
  assert.equal(code, 130);
  assert.match(stderr, /\nInterrupted\n$/);
  await until("pip to end", () => !alive(pip));
  assert.deepEqual(names(join(folder, "cache")), [".setup.lock"]);
});

setupTest("two setups at once fetch once: one waits for the other", "slow", async (folder, env) => {
  const first = start(folder, ["--build", "cpu", "--strict"], env);
  await until("pip", () => pipProcess(folder) !== undefined);
  const second = start(folder, ["--build", "cpu", "--strict"], env);
  const [a, b] = await Promise.all([ended(first), ended(second)]);
  assert.deepEqual([a.code, b.code], [0, 0], a.stderr + b.stderr);
  assert.equal(b.stderr, `Waiting for another setup (process ${first.pid})\n`);
  assert.equal(pipCalls(folder).length, 1);
  assert.equal(copyFault(copyIn(folder)), undefined);
});

const FAILURES: readonly (readonly [mode: string, message: RegExp])[] = [
  ["fail", /^Cannot fetch tensorflow\S*: pip says "No matching distribution found for x": see what "python/m],
  [
    "offline",
    /^Cannot fetch tensorflow\S*: pip cannot reach .* \(\[Errno 111\] Connection refused\): check the/m,
  ],
  ["full", /^Cannot fetch tensorflow\S*: the disk is full: free some space, or set STAGGER_CACHE/m],
  ["damaged", /^Cannot unpack .*: Python says "zipfile\.BadZipFile: .*": run setup again$/m],
];
for (const [mode, message] of FAILURES) {
  setupTest(`setup says in one line what went wrong: ${mode}`, mode, async (folder, env) => {
    const { code, stderr } = await run(folder, ["--strict"], env);
    assert.equal(code, 1);
    assert.match(stderr, message);
    assert.equal(copyFault(copyIn(folder)), "is missing");
    assert.deepEqual(names(join(folder, "cache")), [".setup.lock"]);
  });
}

setupTest(
  "setup without --strict exits with 0 and says what is used instead",
  "fail",
  async (folder, env) => {
    const { code, stderr } = await run(folder, [], env);
    assert.equal(code, 0);
    assert.match(stderr, /\nCannot fetch .*\nStagger uses (its wasm engine|the libtensorflow in )/);
  },
);

setupTest("setup names a Python without pip", "", async (folder, env) => {
  installPython(join(folder, "bin"), "-S"); // -S: without the folder that pip is installed in
  const { code, stderr } = await run(folder, ["--strict"], {
    ...env,
    PYTHONPATH: "",
    PATH: join(folder, "bin"),
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^Cannot fetch tensorflow\S*: python3 has no pip: install it, e\.g\. with "apt install/m,
  );
});

setupTest("setup says that there is no Python", "", async (folder, env) => {
  const { code, stderr } = await run(folder, ["--strict"], { ...env, PATH: join(folder, "bin") });
  assert.equal(code, 1);
  assert.match(stderr, /^Cannot fetch libtensorflow: there is no Python 3: install it/);
});

setupTest("setup says that the cache cannot be written", "", async (folder, env) => {
  writeText(join(folder, "file"), "");
  const cache = join(folder, "file", "cache");
  const { code, stderr } = await run(folder, ["--strict"], { ...env, STAGGER_CACHE: cache });
  assert.equal(code, 1);
  assert.match(stderr, /^Cannot write to the cache .*: set STAGGER_CACHE to a folder that can be written\n$/);
});

setupTest("setup leaves a libtensorflow of the user's alone", "", async (folder, env) => {
  writePair(join(folder, "own"));
  const own = { ...env, STAGGER_TENSORFLOW: join(folder, "own") };
  assert.deepEqual(await ended(start(folder, ["--strict"], own)), { code: 0, stdout: "", stderr: "" });
  const wrong = await ended(start(folder, ["--strict"], { ...own, STAGGER_TENSORFLOW: folder }));
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /^Cannot use STAGGER_TENSORFLOW=/);
  assert.deepEqual(pipCalls(folder), []);
});

setupTest("setup rejects wrong arguments", "", async (folder, env) => {
  const { code, stderr } = await run(folder, ["--build", "gpu"], env);
  assert.equal(code, 2);
  assert.match(stderr, /^Cannot fetch build "gpu": use "cpu" or "cuda"\n/);
});

Deno.test({
  name: "setup --build cuda fetches the NVIDIA packages that the wheel names",
  ignore: !works || Deno.build.arch !== "x86_64",
  fn: () =>
    inFolder(() => ({}), async (folder) => {
      const { code, stderr } = await run(folder, ["--build", "cuda", "--strict"], installFakePip(folder));
      assert.equal(code, 0, stderr);
      assert.deepEqual(pipCalls(folder).map((call) => call.split(" ").at(-1)), [
        "tensorflow==2.21.0",
        "nvidia-one-cu12<13.0,>=12.5",
        "nvidia-two-cu12<13.0,>=12.5",
      ]);
      const copy = copyIn(folder, "cuda");
      assert.equal(copyFault(copy), undefined);
      assert.deepEqual(filesBelow(copy).filter((name) => name.startsWith("nvidia")), [
        "nvidia/one/lib/libone.so.12",
        "nvidia/two/lib/libtwo.so.12",
        "nvidia_one.dist-info/licenses/License.txt",
        "nvidia_two.dist-info/licenses/License.txt",
      ]);
    }),
});

Deno.test("cudaRequirements() reads the extra's lines alone", () => {
  const metadata = [
    "Requires-Dist: numpy>=1.26.0",
    'Requires-Dist: nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    "Requires-Dist: nvidia-nccl-cu12 (==2.27.7) ; extra == 'and-cuda'",
    'Requires-Dist: nvidia-other; extra == "other"',
    'Requires-Dist: tensorflow-io>=0.23.1; (sys_platform != "win32") and extra == "gcs-filesystem"',
  ].join("\n");
  assert.deepEqual(cudaRequirements(metadata), [
    "nvidia-cublas-cu12<13.0,>=12.5.3.2",
    "nvidia-nccl-cu12==2.27.7",
  ]);
});

/** What the printer writes for a download of 300 MB. */
function printed(terminal: boolean, width: number): string[] {
  const out: string[] = [];
  const printer = progressPrinter({ terminal, width, write: (text) => void out.push(text) });
  const progress = {
    step: "download",
    item: "nvidia-x<2.0,>=1.2",
    index: 2,
    count: 3,
    total: 300e6,
  } as const;
  for (const done of [0, 80e6, 81e6, 300e6]) printer.show({ ...progress, done });
  printer.show({ ...progress, step: "unpack", done: 0 });
  printer.clear();
  return out;
}

Deno.test("progressPrinter() writes plain lines elsewhere than on a terminal", () => {
  assert.deepEqual(printed(false, 80), [
    "Fetching nvidia-x (2 of 3)\n",
    "Fetching nvidia-x (2 of 3): 25% of 300 MB\n",
    "Unpacking nvidia-x (2 of 3)\n",
  ]);
});

Deno.test("progressPrinter() draws a bar on a terminal, within its width, and takes it away", () => {
  const out = printed(true, 40);
  assert.deepEqual(out, [
    "\r\x1b[KFetching nvidia-x (2 of 3) [-----------",
    "\r\x1b[KUnpacking nvidia-x (2 of 3) [----------",
    "\r\x1b[K",
  ]);
  assert.match(printed(true, 200)[0]!, /\[-{20}\] 0% of 300 MB$/);
});
