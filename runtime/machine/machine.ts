/** What machine this is: processor, cores that this process may use, memory, GPUs. @module */
import { cudaState } from "../tensorflow/library/cuda.ts";
import { readSystemFile } from "./system_file.ts";

/** Where a run took place. */
export interface MachineInfo {
  /** CPU model as the system names it. */
  readonly cpu: string;
  /** Cores that this process may use. */
  readonly cores: number;
  /** Bytes of memory. */
  readonly memory: number;
  readonly os: string;
  readonly deno: string;
  /** Names of GPUs, empty without. */
  readonly gpus: readonly string[];
}

/** Describes this machine. */
export function machineInfo(): MachineInfo {
  return {
    cpu: cpuModel(),
    cores: allowedCores().length,
    memory: Deno.systemMemoryInfo().total,
    os: `${osName()} ${Deno.osRelease()} ${Deno.build.arch}`,
    deno: Deno.version.deno,
    gpus: cudaState().devices.map((device) => device.name),
  };
}

/** The processor's name, such as "AMD EPYC 7763". */
export function cpuModel(): string {
  const info = readSystemFile("/proc/cpuinfo") ?? "";
  // ARM processors have no "model name" there.
  return info.match(/^model name\s*:\s*(.+)$/m)?.[1] ??
    info.match(/^(?:Model|Hardware)\s*:\s*(.+)$/m)?.[1] ??
    `${Deno.build.arch} processor`;
}

/** Instruction sets that decide how fast a CPU device trains, in the words of `/proc/cpuinfo`. */
const FEATURES = [
  "avx",
  "avx2",
  "fma",
  "avx512f",
  "avx512_vnni",
  "avx512_bf16",
  "amx_tile",
  "amx_bf16",
  "asimd",
  "sve",
  "bf16",
];

/** Which of the instruction sets that matter for training this processor has. */
export function cpuFeatures(info: string = readSystemFile("/proc/cpuinfo") ?? ""): string[] {
  const flags = new Set(info.match(/^(?:flags|Features)\s*:\s*(.+)$/m)?.[1]?.split(/\s+/));
  return FEATURES.filter((feature) => flags.has(feature));
}

const symbols = {
  sched_getaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
} as const;

/** Bytes of a mask of cores: room for 8,192 of them. */
const MASK_BYTES = 1024;

/** Numbers of the cores that this thread may run on, in order; a container or `taskset` may allow fewer. */
export function allowedCores(): number[] {
  if (
    Deno.build.os === "linux" && Deno.permissions.querySync({ name: "ffi" }).state === "granted"
  ) {
    const mask = new Uint8Array(MASK_BYTES);
    const libc = Deno.dlopen("libc.so.6", symbols);
    const failed = libc.symbols.sched_getaffinity(0, BigInt(mask.length), mask) < 0;
    libc.close();
    if (!failed) {
      return Array.from({ length: mask.length * 8 }, (_, core) => core)
        .filter((core) => (mask[core >> 3]! >> (core & 7)) & 1);
    }
  }
  return Array.from({ length: navigator.hardwareConcurrency }, (_, core) => core);
}

function osName(): string {
  const names: Partial<Record<typeof Deno.build.os, string>> = {
    linux: "Linux",
    darwin: "macOS",
    windows: "Windows",
  };
  return names[Deno.build.os] ?? Deno.build.os;
}
