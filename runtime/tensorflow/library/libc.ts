/** The C library, which every process on Linux has. @module */
import { libcSymbols } from "../binding/symbols/libc.ts";

/** The C library's functions. */
export type Libc = Deno.StaticForeignLibraryInterface<typeof libcSymbols>;

let libc: Libc | undefined;

/** The C library of this process. */
export function openLibc(): Libc {
  libc ??= Deno.dlopen("libc.so.6", libcSymbols).symbols;
  return libc;
}
