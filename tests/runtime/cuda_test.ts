import assert from "node:assert/strict";
import { join } from "node:path";
import { cudaState, hasNvidiaDriver } from "../../runtime/tensorflow/library/cuda.ts";
import { inFolder } from "./fake_tensorflow.ts";

/** Stands in for NVIDIA's driver: `INIT` is what starting it answers. */
const DRIVER = `
#include <string.h>
int cuInit(unsigned flags) { return INIT; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 70 + ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
  strncpy(name, device == 70 ? "First GPU" : "Second GPU", length);
  return 0;
}
int cuDeviceTotalMem_v2(unsigned long *bytes, int device) { *bytes = 80000000000UL + device; return 0; }
int cuGetErrorString(int error, const char **text) { *text = "no device found"; return 0; }
`;

const compiler = ["cc", "gcc", "clang"].find((command) => {
  try {
    return new Deno.Command(command, { args: ["--version"], stdout: "null", stderr: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
});

function buildDriver(folder: string, init: number): string {
  const [source, library] = [join(folder, `driver${init}.c`), join(folder, `libdriver${init}.so`)];
  Deno.writeTextFileSync(source, DRIVER.replace("INIT", String(init)));
  const args = ["-shared", "-fPIC", "-o", library, source];
  assert.ok(new Deno.Command(compiler!, { args }).outputSync().success);
  return library;
}

Deno.test({
  name: "cudaState() asks the driver for its devices",
  ignore: compiler === undefined || Deno.build.os !== "linux",
  fn: () =>
    inFolder(() => ({}), (folder) => {
      assert.deepEqual(cudaState(buildDriver(folder, 0)), {
        driver: true,
        cudaVersion: "12.8",
        devices: [
          { index: 0, name: "First GPU", memory: 80000000070 },
          { index: 1, name: "Second GPU", memory: 80000000071 },
        ],
      });
    }),
});

Deno.test({
  name: "cudaState() tells why a driver gives no devices",
  ignore: compiler === undefined || Deno.build.os !== "linux",
  fn: () =>
    inFolder(() => ({}), (folder) => {
      assert.deepEqual(cudaState(buildDriver(folder, 100)), {
        driver: true,
        cudaVersion: "12.8",
        devices: [],
        problem: "Cannot start NVIDIA's driver: no device found (error 100)",
      });
    }),
});

Deno.test("cudaState() answers without a driver", () => {
  const state = cudaState("libnothing-of-this-name.so.1");
  assert.deepEqual(state.devices, []);
  assert.equal(state.driver, hasNvidiaDriver());
});
