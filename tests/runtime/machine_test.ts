import assert from "node:assert/strict";
import { cpuQuota, memoryLimit } from "../../runtime/machine/cgroup.ts";
import { allowedCores, cpuFeatures, machineInfo } from "../../runtime/machine/machine.ts";
import { readSystemFile } from "../../runtime/machine/system_file.ts";

const onLinux = Deno.build.os === "linux";

/** A system of these files alone. */
function system(files: Partial<Record<string, string>>): (path: string) => string | undefined {
  return (path) => files[path];
}

Deno.test("cpuQuota() and memoryLimit() take the tightest of a group and those around it", () => {
  const read = system({
    "/proc/self/cgroup": "0::/a/b\n",
    "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
    "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
    "/sys/fs/cgroup/a/b/memory.max": "2000000000\n",
    "/sys/fs/cgroup/a/memory.max": "3000000000\n",
  });
  assert.equal(cpuQuota(read), 1.5);
  assert.equal(memoryLimit(read), 2e9);
});

Deno.test("cpuQuota() and memoryLimit() read version 1, and a group that has the host's path", () => {
  const read = system({
    "/proc/self/cgroup": "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000000\n",
  });
  assert.equal(cpuQuota(read), 0.5);
  assert.equal(memoryLimit(read), 1e9);
});

Deno.test("cpuQuota() and memoryLimit() answer nothing without a limit", () => {
  for (
    const files of [
      {},
      {
        "/proc/self/cgroup": "0::/\n",
        "/sys/fs/cgroup/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/memory.max": "max\n",
      },
      {
        "/proc/self/cgroup": "3:cpu:/\n2:memory:/\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      },
    ]
  ) {
    assert.equal(cpuQuota(system(files)), undefined);
    assert.equal(memoryLimit(system(files)), undefined);
  }
});

Deno.test("cpuFeatures() reads x86_64 and ARM", () => {
  assert.deepEqual(cpuFeatures("x: y\nflags\t\t: fpu avx avx2 avx512f amx_tile avx_vnni\n"), [
    "avx",
    "avx2",
    "avx512f",
    "amx_tile",
  ]);
  assert.deepEqual(cpuFeatures("Features\t: fp asimd sve bf16\n"), ["asimd", "sve", "bf16"]);
});

Deno.test({
  name: "allowedCores() sees a mask of cores",
  ignore: !onLinux,
  async fn() {
    const cores = allowedCores();
    assert.ok(cores.length >= 1);
    const last = cores.at(-1)!;
    // In a process of its own, whose mask may be changed.
    const program = `
      import { allowedCores } from ${
      JSON.stringify(new URL("../../runtime/machine/machine.ts", import.meta.url).href)
    };
      const mask = new Uint8Array(1024);
      mask[${last >> 3}] = ${1 << (last & 7)};
      Deno.dlopen("libc.so.6", {
        sched_setaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
      }).symbols.sched_setaffinity(0, 1024n, mask);
      console.log(JSON.stringify(allowedCores()));
    `;
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-lock", "--ext=ts", program],
    }).output();
    assert.equal(new TextDecoder().decode(stdout), `[${last}]\n`, new TextDecoder().decode(stderr));
  },
});

Deno.test({
  name: "readSystemFile() reads the kernel's files, and answers nothing for what is not there",
  ignore: !onLinux,
  fn() {
    assert.match(readSystemFile("/proc/self/status")!, new RegExp(`^Pid:\\s*${Deno.pid}$`, "m"));
    assert.equal(readSystemFile("/proc/nothing"), undefined);
    assert.equal(readSystemFile("/proc"), undefined);
  },
});

Deno.test("machineInfo() describes this machine", () => {
  const info = machineInfo();
  assert.equal(info.cores, allowedCores().length);
  assert.equal(info.deno, Deno.version.deno);
  assert.ok(info.memory > 1e6);
  assert.ok(info.cpu.length > 0 && info.os.endsWith(Deno.build.arch));
});
