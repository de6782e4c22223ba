/**
 * Reads the kernel's own files (`/proc`, `/sys`), which Deno opens with `--allow-all` alone: through the C
 * library, for which `--allow-ffi` is enough.
 * @module
 */
import { cstring } from "../tensorflow/binding/cstring.ts";

const O_RDONLY = 0;
const O_CLOEXEC = 0o2000000;

const symbols = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  close: { parameters: ["i32"], result: "i32" },
} as const;

let libc: Deno.StaticForeignLibraryInterface<typeof symbols> | undefined;

/**
 * The text of a system file.
 *
 * @param path e.g. `/proc/cpuinfo`
 * @returns undefined if it is not there, cannot be read, or this is not Linux
 */
export function readSystemFile(path: string): string | undefined {
  if (Deno.build.os !== "linux") return undefined;
  // Asked for before, so that no prompt appears in the middle of a run.
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return undefined;
  libc ??= Deno.dlopen("libc.so.6", symbols).symbols;
  const file = libc.open(cstring(path), O_RDONLY | O_CLOEXEC);
  if (file < 0) return undefined;
  const decoder = new TextDecoder();
  const chunk = new Uint8Array(65536);
  let text = "";
  try {
    for (;;) {
      const count = Number(libc.read(file, chunk, BigInt(chunk.length)));
      if (count < 0) return undefined; // a folder, or taken away meanwhile
      if (count === 0) return text + decoder.decode();
      text += decoder.decode(chunk.subarray(0, count), { stream: true });
    }
  } finally {
    libc.close(file);
  }
}
