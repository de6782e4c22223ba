/** What Stagger calls of the C library. @module */
import { BUFFER, HANDLE } from "./types.ts";

/** `dlfcn.h`, `sched.h`, `string.h`, `stdlib.h`, `malloc.h`, `unistd.h`, `fcntl.h`. */
export const libcSymbols = {
  dlopen: { parameters: [BUFFER, "i32"], result: HANDLE },
  dlsym: { parameters: [HANDLE, BUFFER], result: HANDLE },
  dlerror: { parameters: [], result: "pointer" },
  memcpyIn: { name: "memcpy", parameters: [HANDLE, BUFFER, "usize"], result: HANDLE },
  memcpyOut: { name: "memcpy", parameters: [BUFFER, HANDLE, "usize"], result: HANDLE },
  sched_setaffinity: { parameters: ["i32", "usize", BUFFER], result: "i32" },
  sched_getaffinity: { parameters: ["i32", "usize", BUFFER], result: "i32" },
  on_exit: { parameters: [HANDLE, HANDLE], result: "i32" },
  dup: { parameters: ["i32"], result: "i32" },
  dup2: { parameters: ["i32", "i32"], result: "i32" },
  open: { parameters: [BUFFER, "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  read: { parameters: ["i32", BUFFER, "usize"], result: "isize" },
  lseek: { parameters: ["i32", "i64", "i32"], result: "i64" },
  flock: { parameters: ["i32", "i32"], result: "i32" },
  memfd_create: { parameters: [BUFFER, "u32"], result: "i32" },
  write: { parameters: ["i32", BUFFER, "usize"], result: "isize" },
  malloc_trim: { parameters: ["usize"], result: "i32" },
} as const;
