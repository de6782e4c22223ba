/** A pip that makes small wheels out of nothing, for tests without network. Not a test. @module */
import { join } from "node:path";
import { askPython, findPython } from "../../runtime/tensorflow/library/python.ts";
import { fakeLibrary, writeText } from "./fake_tensorflow.ts";

/** The interpreter itself: what stands on the path may be a script that takes long to find it. */
const executable = askPython(findPython()?.command ?? "python3", ["-c", "import sys; print(sys.executable)"])
  ?.stdout.trim() ?? "";

/** Puts a `python3` into `folder` that is run with further options. */
export function installPython(folder: string, options = ""): void {
  writeText(join(folder, "python3"), `#!/bin/sh\nexec "${executable}" ${options} "$@"\n`);
  Deno.chmodSync(join(folder, "python3"), 0o755);
}

/**
 * Its `FAKE_PIP_MODE`: "" makes a wheel, "slow" takes two seconds, "hang" does not end within a test, "fail"
 * fails as pip does, "offline" as without network, "full" as on a full disk, "damaged" makes a wheel that is
 * cut short, "large" one that takes a while to unpack.
 */
const PIP = `
import os, sys, time, zipfile
home, mode = os.environ["FAKE_PIP"], os.environ.get("FAKE_PIP_MODE", "")
arguments = sys.argv[1:]
with open(home + "/log", "a") as log:
    log.write(" ".join(arguments) + "\\n")
with open(home + "/pid", "w") as pid:
    pid.write(str(os.getpid()))
if mode == "fail":
    print("WARNING: something else", file=sys.stderr)
    sys.exit("ERROR: No matching distribution found for x")
if mode == "offline":
    print("WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<x at 0x1>: "
          "Failed to establish a new connection: [Errno 111] Connection refused')': /simple/x/",
          file=sys.stderr)
    sys.exit("ERROR: No matching distribution found for x")
if mode == "full":
    sys.exit("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
requirement, folder = arguments[-1], arguments[arguments.index("--dest") + 1]
print("  Downloading x.whl (300.0 MB)")
with open(os.environ["TMPDIR"] + "/part", "wb") as part:
    part.truncate(150_000_000)
if mode == "hang":
    time.sleep(30)
if mode == "slow":
    time.sleep(2)
library = open(home + "/library", "rb").read()
path = folder + "/x-1-cp311.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
    if requirement.startswith("nvidia-"):
        part = requirement.split("-")[1]
        wheel.writestr("nvidia/%s/lib/lib%s.so.12" % (part, part), "library")
        wheel.writestr("nvidia/%s/include/x.h" % part, "not kept")
        wheel.writestr("nvidia_%s.dist-info/licenses/License.txt" % part, "licence")
    else:
        wheel.writestr("tensorflow/libtensorflow_cc.so.2", library)
        if mode == "large":
            with wheel.open("tensorflow/LICENSE", "w", force_zip64=True) as file:
                for _ in range(400):
                    file.write(bytes(1 << 20))
        wheel.writestr("tensorflow/libtensorflow_framework.so.2", library)
        wheel.writestr("tensorflow/include/LICENSE", "licence")
        wheel.writestr("tensorflow/THIRD_PARTY_NOTICES.txt", "notices")
        wheel.writestr("tensorflow/__init__.py", "not kept")
        wheel.writestr("../../../escaped/LICENSE", "not kept")
        wheel.writestr("x-1.dist-info/METADATA", "Name: x\\n"
                       "Requires-Dist: numpy>=1.26.0\\n"
                       "Requires-Dist: nvidia-one-cu12<13.0,>=12.5; extra == \\"and-cuda\\"\\n"
                       "Requires-Dist: nvidia-two-cu12<13.0,>=12.5; extra == \\"and-cuda\\"\\n")
if mode == "damaged":
    os.truncate(path, os.path.getsize(path) // 2)
`;

/**
 * Puts the fake pip where Python finds it before its own.
 *
 * @returns environment variables for setup's process
 */
export function installFakePip(folder: string, mode = ""): Record<string, string> {
  const home = join(folder, "pip-home");
  writeText(join(home, "pip", "__init__.py"), "");
  writeText(join(home, "pip", "__main__.py"), PIP);
  writeText(join(home, "log"), "");
  Deno.writeFileSync(join(home, "library"), fakeLibrary());
  const bin = join(folder, "pip-bin");
  installPython(bin);
  return { PATH: `${bin}:${Deno.env.get("PATH")}`, PYTHONPATH: home, FAKE_PIP: home, FAKE_PIP_MODE: mode };
}

/** The arguments of each call of the fake pip so far. */
export function pipCalls(folder: string): string[] {
  return Deno.readTextFileSync(join(folder, "pip-home", "log")).split("\n").filter((line) => line !== "");
}

/** The last called pip's process number; undefined before any. */
export function pipProcess(folder: string): number | undefined {
  try {
    return Number(Deno.readTextFileSync(join(folder, "pip-home", "pid"))) || undefined;
  } catch {
    return undefined;
  }
}
