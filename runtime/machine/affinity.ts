/** Binds a thread to cores. @module */
import { openLibc } from "../tensorflow/library/libc.ts";

/** Bytes of a mask of cores: room for 8,192. */
const MASK_BYTES = 1024;

/**
 * Binds the calling thread, and the threads that it starts from now on, to one core. Where the system has no
 * such call, threads stay where the system puts them.
 *
 * @throws {Error} if the system refuses the core
 */
export function pinToCore(core: number): void {
  bindToCores([core]);
}

/** As `pinToCore`, to any of several cores. @throws {Error} if the system refuses them */
export function bindToCores(cores: readonly number[]): void {
  if (Deno.build.os !== "linux") return;
  const mask = new Uint8Array(MASK_BYTES);
  for (const core of cores) mask[core >> 3]! |= 1 << (core & 7);
  if (openLibc().sched_setaffinity(0, BigInt(mask.length), mask) !== 0) {
    throw new Error(`Cannot bind a worker to core ${cores.join(", ")}: the system refused`);
  }
}
