/** Peak memory of this process, as Linux counts it. @module */
import { cstring } from "../runtime/tensorflow/binding/cstring.ts";
import { openLibc } from "../runtime/tensorflow/library/libc.ts";
import { readSystemFile } from "../runtime/machine/system_file.ts";

/** Bytes resident now, freed memory given back first; undefined where the system does not tell. */
export function residentBytes(): number | undefined {
  if (Deno.build.os !== "linux") return undefined;
  openLibc().malloc_trim(0n);
  return statusBytes("VmRSS");
}

/** Runs `body` and answers with the most bytes that were resident meanwhile. */
export async function peakDuring<T>(
  body: () => Promise<T>,
): Promise<{ result: T; peak: number | undefined }> {
  const counted = residentBytes() !== undefined && resetPeak();
  const result = await body();
  return { result, peak: counted ? statusBytes("VmHWM") : undefined };
}

/** Starts the system's peak anew: 5 in clear_refs (proc_pid_clear_refs(5)). */
function resetPeak(): boolean {
  const c = openLibc();
  const WRITE_ONLY = 1;
  const file = c.open(cstring("/proc/self/clear_refs"), WRITE_ONLY);
  if (file < 0) return false;
  const written = c.write(file, new TextEncoder().encode("5"), 1n);
  c.close(file);
  return written === 1n;
}

function statusBytes(field: string): number | undefined {
  const match = readSystemFile("/proc/self/status")?.match(new RegExp(`^${field}:\\s+(\\d+) kB`, "m"));
  return match ? Number(match[1]) * 1024 : undefined;
}
