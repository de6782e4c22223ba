import assert from "node:assert/strict";
import { join } from "node:path";
import { hasNvidiaDriver } from "../../runtime/tensorflow/library/cuda.ts";
import { libraryFault } from "../../runtime/tensorflow/library/elf.ts";
import {
  findTensorflow,
  searchTensorflow,
  TensorflowPathError,
} from "../../runtime/tensorflow/library/find.ts";
import { findPython } from "../../runtime/tensorflow/library/python.ts";
import { fakeLibrary, inFolder, writeCopy, writePair, writeText } from "./fake_tensorflow.ts";

/** Nothing named, an empty cache, no Python. */
function bare(folder: string): Record<string, string | undefined> {
  return {
    STAGGER_TENSORFLOW: undefined,
    STAGGER_CACHE: join(folder, "cache"),
    LD_LIBRARY_PATH: undefined,
    PATH: join(folder, "bin"),
  };
}

const onLinux = Deno.build.os === "linux";
const python = findPython();
// A machine that has it in /usr/lib finds it there before what these tests put into the places after.
const inSystem = searchTensorflow({}).some(({ origin, outcome }) =>
  origin === "system" && outcome === "found"
);

Deno.test("findTensorflow() takes a folder or a library by path", () =>
  inFolder(bare, (folder) => {
    writePair(folder);
    for (const path of [folder, join(folder, "libtensorflow_cc.so.2")]) {
      const found = findTensorflow({ path });
      assert.deepEqual(found, {
        directory: folder,
        cc: join(folder, "libtensorflow_cc.so.2"),
        framework: join(folder, "libtensorflow_framework.so.2"),
        origin: "path",
        build: "unknown",
        cudaLibraries: [],
      });
    }
  }));

Deno.test("findTensorflow() takes the path from STAGGER_TENSORFLOW, the option before it", () =>
  inFolder(bare, (folder) => {
    writePair(join(folder, "a"));
    writePair(join(folder, "b"));
    Deno.env.set("STAGGER_TENSORFLOW", join(folder, "a"));
    assert.equal(findTensorflow()?.directory, join(folder, "a"));
    assert.equal(findTensorflow({ path: join(folder, "b") })?.directory, join(folder, "b"));
    Deno.env.set("STAGGER_TENSORFLOW", "");
    if (!inSystem) assert.equal(findTensorflow(), undefined);
  }));

Deno.test("findTensorflow() rejects a wrong path and looks nowhere else", () =>
  inFolder(bare, (folder) => {
    writeCopy(join(folder, "cache"), "cpu");
    const path = join(folder, "nowhere");
    const message = (label: string) =>
      `Cannot use ${label}: ${path}/libtensorflow_cc.so.2 is missing: name a folder that holds ` +
      `libtensorflow_cc.so.2 and libtensorflow_framework.so.2 for ${Deno.build.arch}, or leave it out`;
    assert.throws(
      () => findTensorflow({ path }),
      new TensorflowPathError(message(`tensorflow.path "${path}"`)),
    );
    Deno.env.set("STAGGER_TENSORFLOW", path);
    assert.throws(() => findTensorflow(), new TensorflowPathError(message(`STAGGER_TENSORFLOW="${path}"`)));
    assert.deepEqual(searchTensorflow().map(({ origin, outcome }) => [origin, outcome]), [[
      "path",
      "unusable",
    ]]);
  }));

Deno.test("libraryFault() tells what is wrong with a library", () =>
  inFolder(bare, (folder) => {
    const path = join(folder, "x.so");
    const other = Deno.build.arch === "x86_64" ? "aarch64" : "x86_64";
    const faultOf = (bytes: Uint8Array) => {
      Deno.writeFileSync(path, bytes);
      return libraryFault(path);
    };
    assert.equal(libraryFault(path), "is missing");
    assert.equal(libraryFault(folder), "is not a file");
    assert.equal(faultOf(new Uint8Array(63)), "is too small for a library: 63 bytes");
    assert.equal(
      faultOf(new TextEncoder().encode("<html>".repeat(100))),
      "is not a 64-bit ELF shared library",
    );
    assert.equal(
      faultOf(fakeLibrary({ arch: other })),
      `is made for ${other}, this machine is ${Deno.build.arch}`,
    );
    assert.equal(faultOf(fakeLibrary().subarray(0, 4095)), "is truncated: 4095 of 4096 bytes");
    assert.equal(
      faultOf(fakeLibrary().subarray(0, 100)),
      "is truncated: 100 bytes hold not even its headers",
    );
    assert.equal(faultOf(fakeLibrary()), undefined);
  }));

Deno.test("findTensorflow() finds the build from where a library looks for others", () =>
  inFolder(bare, (folder) => {
    writePair(folder, { searchPath: "$ORIGIN/../nvidia/cublas/lib" });
    assert.equal(findTensorflow({ path: folder })?.build, "cuda");
  }));

Deno.test("findTensorflow() finds a copy in the cache", () =>
  inFolder(bare, (folder) => {
    const copy = writeCopy(join(folder, "cache"), "cpu");
    const found = findTensorflow();
    assert.deepEqual(
      [found?.origin, found?.build, found?.directory, found?.cudaLibraries],
      ["cache", "cpu", join(copy, "tensorflow"), []],
    );
  }));

Deno.test("findTensorflow() places the cache by STAGGER_CACHE, XDG_CACHE_HOME, HOME", () =>
  inFolder(bare, (folder) => {
    const home = writeCopy(join(folder, "home", ".cache", "stagger"), "cpu");
    const xdg = writeCopy(join(folder, "xdg", "stagger"), "cpu");
    const own = writeCopy(join(folder, "cache"), "cpu");
    const saved = { home: Deno.env.get("HOME"), xdg: Deno.env.get("XDG_CACHE_HOME") };
    try {
      Deno.env.set("HOME", join(folder, "home"));
      Deno.env.set("XDG_CACHE_HOME", join(folder, "xdg"));
      assert.equal(findTensorflow()?.directory, join(own, "tensorflow"));
      Deno.env.delete("STAGGER_CACHE");
      assert.equal(findTensorflow()?.directory, join(xdg, "tensorflow"));
      Deno.env.delete("XDG_CACHE_HOME");
      assert.equal(findTensorflow()?.directory, join(home, "tensorflow"));
    } finally {
      if (saved.home !== undefined) Deno.env.set("HOME", saved.home);
      if (saved.xdg !== undefined) Deno.env.set("XDG_CACHE_HOME", saved.xdg);
    }
  }));

Deno.test("findTensorflow() prefers the CUDA build only where there is a driver", () =>
  inFolder(bare, (folder) => {
    for (const build of ["cpu", "cuda"] as const) writeCopy(join(folder, "cache"), build);
    if (!hasNvidiaDriver()) {
      assert.equal(findTensorflow()?.build, "cpu");
      writeText(join(folder, "bin", "nvidia-smi"), "");
    }
    assert.equal(hasNvidiaDriver(), onLinux);
    assert.equal(findTensorflow()?.build, onLinux ? "cuda" : "cpu");
  }));

Deno.test("findTensorflow() lists the CUDA build's libraries, each after those it needs", () =>
  inFolder(bare, (folder) => {
    const copy = writeCopy(join(folder, "cache"), "cuda");
    assert.deepEqual(
      findTensorflow()?.cudaLibraries,
      ["cublas/lib/libcublasLt.so.12", "cublas/lib/libcublas.so.12", "cudnn/lib/libcudnn.so.9"]
        .map((name) => join(copy, "nvidia", name)),
    );
  }));

Deno.test("findTensorflow() passes over a copy that is not whole, and says why", () =>
  inFolder(bare, (folder) => {
    const cache = join(folder, "cache");
    const copy = writeCopy(cache, "cpu");
    const detail = () => searchTensorflow().find(({ place }) => place === copy)?.detail;
    const library = join(copy, "tensorflow", "libtensorflow_cc.so.2");
    Deno.truncateSync(library, 1000);
    assert.equal(detail(), "is not whole: tensorflow/libtensorflow_cc.so.2 has 1000 of 4096 bytes");
    Deno.writeFileSync(library, new Uint8Array(4096)); // as a file whose contents never reached the disk
    assert.equal(detail(), "is not whole: libtensorflow_cc.so.2 is not a 64-bit ELF shared library");
    Deno.removeSync(library);
    assert.equal(detail(), "is not whole: tensorflow/libtensorflow_cc.so.2 is missing");
    writeCopy(cache, "cpu");
    Deno.removeSync(join(copy, "stagger.json"));
    assert.equal(detail(), "is not whole: stagger.json is missing");
    writeCopy(cache, "cpu");
    Deno.writeTextFileSync(join(copy, "stagger.json"), "{");
    assert.equal(detail(), "is not whole: stagger.json cannot be understood");
    if (!inSystem) assert.equal(findTensorflow(), undefined);
  }));

Deno.test({
  name: "findTensorflow() finds the system's library through LD_LIBRARY_PATH",
  ignore: !onLinux,
  fn: () =>
    inFolder(bare, (folder) => {
      writePair(join(folder, "lib"));
      Deno.env.set("LD_LIBRARY_PATH", `/nowhere:${join(folder, "lib")}`);
      const found = findTensorflow();
      assert.deepEqual([found?.origin, found?.directory], ["system", join(folder, "lib")]);
    }),
});

Deno.test({
  name: "findTensorflow() finds an installed Python package without importing it",
  ignore: python === undefined || inSystem,
  fn: () =>
    inFolder((folder) => ({ ...bare(folder), PATH: Deno.env.get("PATH") }), (folder) => {
      const packages = join(folder, "packages");
      const marker = join(folder, "imported");
      writePair(join(packages, "tensorflow"));
      writeText(join(packages, "tensorflow", "__init__.py"), `open(${JSON.stringify(marker)}, "w")`);
      const info = join(packages, "tensorflow", "python", "platform", "build_info.py");
      writeText(info, "build_info = dict([('is_cuda_build', False)])");
      writeText(join(packages, "nvidia", "nccl", "lib", "libnccl.so.2"), "");
      const before = Deno.env.get("PYTHONPATH");
      Deno.env.set("PYTHONPATH", packages);
      try {
        const find = () => {
          const found = findTensorflow();
          return [found?.origin, found?.directory, found?.build, found?.cudaLibraries];
        };
        const directory = join(packages, "tensorflow");
        assert.deepEqual(find(), ["python", directory, "cpu", []]);
        writeText(info, "build_info = dict([('is_cuda_build', True)])");
        const nccl = join(packages, "nvidia", "nccl", "lib", "libnccl.so.2");
        assert.deepEqual(find(), ["python", directory, "cuda", [nccl]]);
        assert.throws(() => Deno.statSync(marker), Deno.errors.NotFound);
      } finally {
        if (before === undefined) Deno.env.delete("PYTHONPATH");
        else Deno.env.set("PYTHONPATH", before);
      }
    }),
});

Deno.test({
  name: "searchTensorflow() tells every place when there is nothing",
  ignore: inSystem,
  fn: () =>
    inFolder(bare, () => {
      const steps = searchTensorflow();
      assert.equal(findTensorflow(), undefined);
      assert.deepEqual(steps.map(({ origin, outcome }) => [origin, outcome]), [
        ["cache", "absent"],
        ["cache", "absent"],
        ["system", "absent"],
        ["python", "absent"],
        ["python", "absent"],
      ]);
    }),
});
