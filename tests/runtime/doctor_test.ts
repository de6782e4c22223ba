import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import type { DoctorReport } from "../../runtime/doctor/report.ts";
import { adviceFor } from "../../runtime/doctor/advice.ts";
import { formatReport } from "../../runtime/doctor/text.ts";
import { allowedCores } from "../../runtime/machine/machine.ts";
import {
  findTensorflow,
  type FoundTensorflow,
  searchTensorflow,
} from "../../runtime/tensorflow/library/find.ts";
import { inFolder, writeCopy, writePair } from "./fake_tensorflow.ts";

const MAIN = fileURLToPath(new URL("../../runtime/doctor/main.ts", import.meta.url));

function doctor(
  args: string[],
  env: Record<string, string>,
): { code: number; stdout: string; stderr: string } {
  const { code, stdout, stderr } = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-prompt", "--quiet", "--allow-read", "--allow-env", "--allow-ffi", "--allow-run"],
      ...["--allow-sys", MAIN, ...args],
    ],
    env: { STAGGER_TENSORFLOW: "", ...env },
    stdin: "null",
  }).outputSync();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

function hasCompiler(): boolean {
  try {
    return new Deno.Command("cc", { args: ["--version"], stdout: "null", stderr: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
}

const inSystem = searchTensorflow({}).some(({ origin, outcome }) =>
  origin === "system" && outcome === "found"
);
const real = (() => {
  try {
    return findTensorflow();
  } catch {
    return undefined;
  }
})();

Deno.test({
  name: "doctor names the wasm engine, and what to do, where there is no libtensorflow",
  ignore: inSystem || Deno.build.os !== "linux",
  fn: () =>
    inFolder(() => ({}), (folder) => {
      const bare = { STAGGER_CACHE: join(folder, "cache"), PATH: folder, LD_LIBRARY_PATH: "" };
      const { code, stdout, stderr } = doctor(["--json"], bare);
      assert.deepEqual([code, stderr], [0, ""]);
      const report: DoctorReport = JSON.parse(stdout);
      assert.equal(report.engine, "wasm");
      assert.deepEqual(report.devices, allowedCores().map((_, i) => `cpu:${i}`));
      assert.equal(report.tensorflow, undefined);
      assert.equal(report.python, undefined);
      assert.deepEqual(report.cache, { folder: join(folder, "cache"), bytes: 0 });
      assert.equal(report.versions.deno, Deno.version.deno);
      assert.match(report.versions.tfjs!, /^4\./);
      assert.match(report.versions.stagger!, /^\d+\.\d+\.\d+$/);
      assert.ok(report.machine.memory > 0 && report.machine.memoryAvailable > 0);
      assert.deepEqual(report.advice.map(({ problem }) => problem), [
        "libtensorflow is not there: the slower wasm engine is used",
        "Python 3 is not there: setup needs its pip",
        ...(report.machine.cores === 1
          ? ["Only one core may be used: there is nothing to spread training over"]
          : []),
      ]);
      const text = doctor([], bare);
      assert.equal(text.code, 0);
      assert.match(text.stdout, /\n {2}engine +wasm\n/);
      assert.deepEqual(report.wasm, { simd: true, relaxedSimd: true });
      assert.match(text.stdout, /\nWebAssembly\n {2}kernels +Stagger's own \(relaxed SIMD\)\n/);
      assert.match(text.stdout, /\nTo do\n {2}- libtensorflow is not there: .*\n {4}Run "deno task setup"/);
    }),
});

Deno.test("doctor fails where the named path is wrong", () =>
  inFolder(() => ({}), (folder) => {
    writeCopy(join(folder, "cache"), "cpu");
    const env = { STAGGER_CACHE: join(folder, "cache"), STAGGER_TENSORFLOW: folder };
    const { code, stdout, stderr } = doctor([], env);
    assert.deepEqual([code, stderr], [1, ""]);
    assert.match(stdout, /\n {2}engine +none works\n {2}devices +none\n/);
    assert.ok(
      stdout.includes(
        `libtensorflow in ${folder} cannot be used: ${folder}/libtensorflow_cc.so.2 is missing`,
      ),
    );
  }));

Deno.test("doctor survives a libtensorflow that does not load, and says so", () =>
  inFolder(() => ({}), (folder) => {
    writePair(folder);
    const { code, stdout, stderr } = doctor(["--json"], { STAGGER_TENSORFLOW: folder });
    assert.deepEqual([code, stderr], [1, ""]);
    const report: DoctorReport = JSON.parse(stdout);
    assert.equal(report.engine, undefined);
    assert.match(report.tensorflow!.fault!, /libtensorflow_framework\.so\.2/);
    assert.ok(report.advice[0]!.problem.startsWith(`libtensorflow in ${folder} does not work: `));
  }));

Deno.test({
  name: "doctor survives a libtensorflow that ends its process",
  ignore: Deno.build.os !== "linux" || !hasCompiler(),
  fn: () =>
    inFolder(() => ({}), (folder) => {
      const source = join(folder, "x.c");
      const start = "__attribute__((constructor)) static void start(void)";
      Deno.writeTextFileSync(
        source,
        "#include <stdio.h>\n#include <stdlib.h>\n" +
          `${start} { fputs("W x.cc:1] no AVX\\n", stderr); abort(); }`,
      );
      for (const name of ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]) {
        const args = ["-shared", "-fPIC", "-o", join(folder, name), source];
        assert.ok(new Deno.Command("cc", { args }).outputSync().success);
      }
      const { code, stdout, stderr } = doctor(["--json"], { STAGGER_TENSORFLOW: folder });
      assert.deepEqual([code, stderr], [1, ""]);
      const report: DoctorReport = JSON.parse(stdout);
      assert.equal(report.tensorflow!.fault, "ended its process with SIGABRT: no AVX");
    }),
});

Deno.test({
  name: "doctor loads libtensorflow, and keeps its log lines to itself",
  ignore: real === undefined,
  fn() {
    const { code, stdout, stderr } = doctor(["--json"], { STAGGER_TENSORFLOW: real!.directory });
    assert.deepEqual([code, stderr], [0, ""]);
    const report: DoctorReport = JSON.parse(stdout);
    assert.equal(report.engine, "tensorflow");
    assert.match(report.versions.tensorflow!, /^2\.\d+\.\d+$/);
    assert.ok(report.tensorflow!.devices.includes("CPU:0"));
    assert.ok(report.devices.includes("cpu:0"));
  },
});

Deno.test("doctor rejects wrong arguments", () => {
  const { code, stderr } = doctor(["--jso"], {});
  assert.equal(code, 2);
  assert.match(stderr, /Run "deno task doctor --help" for the options/);
});

type Examined = Parameters<typeof adviceFor>[0];

/** A machine with two GPUs whose libtensorflow sees `devices`. */
function withGpus(build: FoundTensorflow["build"], devices: string[], gpuLog: string[] = []): Examined {
  return {
    versions: { deno: "2", tfjs: "4", tensorflow: "2.21.0" },
    machine: {
      ...{ cpu: "x", cores: 2, memory: 1, os: "x", deno: "2", gpus: ["A", "B"] },
      ...{ cpuFeatures: [], allowedCores: [0, 1], memoryAvailable: 1 },
    },
    search: [],
    tensorflow: {
      ...{ directory: "/x", cc: "/x/cc", framework: "/x/fw", origin: "cache", build, cudaLibraries: [] },
      ...{ version: "2.21.0", devices, gpuLog },
    },
    wasm: { simd: true, relaxedSimd: false },
    nvidia: {
      driver: true,
      devices: [{ index: 0, name: "A", memory: 8e9 }, { index: 1, name: "B", memory: 8e9 }],
    },
    cache: { bytes: 0 },
  };
}

Deno.test("adviceFor() says what to do about GPUs that TensorFlow does not see", () => {
  assert.deepEqual(adviceFor(withGpus("cuda", ["CPU:0", "GPU:0", "GPU:1"])), []);
  assert.deepEqual(adviceFor(withGpus("cpu", ["CPU:0"])), [{
    problem: "The CPU build of libtensorflow is used, though there is A",
    remedy: 'Run "deno task setup --build cuda"',
  }]);
  assert.deepEqual(adviceFor(withGpus("cuda", ["CPU:0", "GPU:0"], ["Cannot dlopen some GPU libraries"])), [{
    problem: "TensorFlow sees 1 of 2 CUDA devices: Cannot dlopen some GPU libraries",
    remedy: 'Run "deno task setup --build cuda", which brings the NVIDIA libraries that it needs',
  }]);
});

Deno.test("adviceFor() says what limits the machine, and which version was found", () => {
  const report = withGpus("cuda", ["CPU:0", "GPU:0", "GPU:1"]);
  assert.deepEqual(
    adviceFor({ ...report, machine: { ...report.machine, cpuQuota: 1.5 } }).map(({ problem }) => problem),
    ["2 cores may be used, but the time of only 1.5 (control group)"],
  );
  assert.deepEqual(
    adviceFor({ ...report, tensorflow: { ...report.tensorflow!, version: "2.17.0" } }).map((a) => a.problem),
    ["TensorFlow 2.17.0 was found: Stagger is tested with 2.21.0"],
  );
  assert.deepEqual(
    adviceFor(report, "Cannot reach the registry\nat x").map(({ problem }) => problem),
    ["TensorFlow.js cannot be loaded: Cannot reach the registry"],
  );
});

Deno.test("formatReport() shows every GPU with its memory, and what WebAssembly has", () => {
  const report = { ...withGpus("cuda", []), engine: "tensorflow", devices: ["cuda:0"], advice: [] } as const;
  const text = formatReport(report);
  assert.match(text, /\n {2}cuda:0 {2}A, 8\.0 GB\n {2}cuda:1 {2}B, 8\.0 GB\n/);
  assert.ok(!text.includes("To do"));
  assert.match(text, /\n {2}kernels +TensorFlow\.js's with SIMD, slower\n/);
  const none = formatReport({ ...report, wasm: { simd: false, relaxedSimd: false } });
  assert.match(none, /\n {2}kernels +TensorFlow\.js's without SIMD, several times slower\n/);
});
