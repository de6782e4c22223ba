/** What the doctor tells: the shape of `doctor --json`. @module */
import type { MachineInfo } from "../machine/machine.ts";
import type { CudaState } from "../tensorflow/library/cuda.ts";
import type { FoundTensorflow, SearchStep } from "../tensorflow/library/find.ts";
import type { Probe } from "../tensorflow/library/probe.ts";
import type { WasmFeatures } from "../wasm/features.ts";
import type { Python } from "../tensorflow/library/python.ts";

/** The machine, with what limits this process on it. */
export interface MachineReport extends MachineInfo {
  /** Instruction sets that matter for training. */
  readonly cpuFeatures: readonly string[];
  /** Numbers of the cores that this process may use. */
  readonly allowedCores: readonly number[];
  /** Processor time that the control groups allow, in cores. */
  readonly cpuQuota?: number;
  /** Bytes of memory that are free or can be freed. */
  readonly memoryAvailable: number;
  /** Bytes of memory that the control groups allow. */
  readonly memoryLimit?: number;
}

/** Everything that was examined. */
export interface DoctorReport {
  readonly versions: {
    readonly stagger?: string;
    readonly deno: string;
    /** TensorFlow.js; absent if it cannot be loaded. */
    readonly tfjs?: string;
    readonly tensorflow?: string;
  };
  readonly machine: MachineReport;
  /** Where libtensorflow was looked for, in order. */
  readonly search: readonly SearchStep[];
  /** What was found, and what it said when it was loaded. */
  readonly tensorflow?: FoundTensorflow & Probe;
  /** What the engine "wasm" would have. */
  readonly wasm: WasmFeatures;
  readonly nvidia: CudaState;
  readonly python?: Python & { readonly pip?: string };
  readonly cache: {
    /** Absent if there is no place for one. */
    readonly folder?: string;
    readonly bytes: number;
  };
  /** The engine that would be used; absent if none works. */
  readonly engine?: "tensorflow" | "wasm";
  /** The devices that it would offer, such as "cpu:0" and "cuda:0". */
  readonly devices: readonly string[];
  readonly advice: readonly Advice[];
}

/** Something that is missing or wrong, and what to do. */
export interface Advice {
  readonly problem: string;
  readonly remedy: string;
}
