/** Keeps the lines that TensorFlow writes while it is loaded from standard error. @module */
import { cstring } from "../binding/cstring.ts";
import { symbolOf } from "./elf.ts";
import type { Libc } from "./libc.ts";

const STDERR = 2;
const O_RDONLY_CLOEXEC = 0o2000000;
const MFD_CLOEXEC = 1;
const LOCK_EX = 2;
const SEEK_SET = 0;

/** `absl::LogSeverityAtLeast`: from which severity on TensorFlow writes a line. */
export const LogSeverity = { Error: 2, Fatal: 3 } as const;

/** `absl::SetMinLogLevel`; the name holds the release of Abseil. */
const SET_MIN_LOG_LEVEL = /_ZN4absl\w*14SetMinLogLevelE\w+/;

/** "I0000 00:00:1796045771.347958 29720 port.cc:153] ..." and Abseil's note about such lines. */
const LOG_LINE = /^(?:[IWEF]\d{4} \d\d:\d\d:\S+ +\d+ \S+:\d+\] |WARNING: All log messages before absl::)/;

/**
 * Sets how bad a thing must be for a loaded TensorFlow to write a line about it: its own environment variable does
 * not hold back all of them.
 *
 * @param framework `libtensorflow_framework.so.2`
 * @returns undefined in releases without that function
 */
export function logLevelOf(framework: string): ((severity: number) => void) | undefined {
  const name = symbolOf(framework, SET_MIN_LOG_LEVEL);
  if (name === undefined) return undefined;
  return Deno.dlopen(framework, { set: { name, parameters: ["i32"], result: "void" } }).symbols.set;
}

/**
 * Runs `body`, which loads a library that writes log lines before anything could be told to it, with standard error
 * turned to memory. Afterwards all but the log lines is written where it belongs: another thread may have written.
 * One thread of the machine at a time: a second one would take the first one's memory for standard error.
 *
 * @param lock a file that can be read, to wait for each other at
 */
export function withoutLogLines(c: Libc, lock: string, body: () => void): void {
  const gate = c.open(cstring(lock), O_RDONLY_CLOEXEC);
  if (gate >= 0) c.flock(gate, LOCK_EX);
  try {
    const saved = c.dup(STDERR);
    const memory = c.memfd_create(cstring("stderr"), MFD_CLOEXEC);
    if (saved < 0 || memory < 0) return body();
    c.dup2(memory, STDERR);
    try {
      body();
    } finally {
      c.dup2(saved, STDERR);
      c.close(saved);
      passOn(c, memory);
      c.close(memory);
    }
  } finally {
    if (gate >= 0) c.close(gate); // which unlocks it
  }
}

function passOn(c: Libc, memory: number): void {
  c.lseek(memory, 0n, SEEK_SET);
  const chunk = new Uint8Array(1 << 16);
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const count = Number(c.read(memory, chunk, BigInt(chunk.length)));
    if (count <= 0) break;
    text += decoder.decode(chunk.subarray(0, count), { stream: true });
  }
  const kept = text.split(/(?<=\n)/).filter((line) => !LOG_LINE.test(line)).join("");
  if (kept !== "") Deno.stderr.writeSync(new TextEncoder().encode(kept));
}
