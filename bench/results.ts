/** What the benchmark measures: the shape of `results.json`. @module */

import type { MachineInfo } from "../runtime/machine/machine.ts";

/** What is measured of everything that takes part, over interleaved rounds. */
export interface StepResults {
  /** Median over rounds. */
  readonly secondsPerStep: number;
  /** Every round's seconds per step, in order. */
  readonly rounds: readonly number[];
  readonly imagesPerSecond: number;
  /** Median over rounds of `single`'s seconds divided by this strategy's in the same round. */
  readonly speedup: number;
  /** `(speedup - 1) * 100`: the gain against sequential in percent, as the published figure draws it. */
  readonly gainPercent: number;
  /** Loss of the last step. */
  readonly loss: number;
}

/** One strategy, measured. */
export interface StrategyResult extends StepResults {
  /** Share of all devices' time spent waiting within a step, 0 to 1. */
  readonly bubbleShare: number;
  /** Share of all devices' time spent copying to and from rings, 0 to 1. */
  readonly transferShare: number;
  /**
   * Bytes at the peak of a step: weights, accumulators, rings, activations and temporaries. Absent where the
   * system does not tell.
   */
  readonly peakMemory?: number;
  /** Milliseconds of host time per action outside the engine's calls and the waits. */
  readonly hostMsPerAction: number;
  /** CPU time of the process divided by wall time while stepping. */
  readonly cpuPerWall: number;
  /** Layers that begin each stage after the first. */
  readonly partition: readonly string[];
  readonly microBatches: number;
  /** Seconds that capturing took before the first step, the slowest stage's. */
  readonly captureSeconds: number;
}

/** What one device did when, in one step. */
export interface TimelineEvent {
  /** "F", "B", "W", "BW", "U" or "wait". */
  readonly kind: string;
  /** Micro-batch; -1 where none applies. */
  readonly microBatch: number;
  /** How many in one call, counted from `microBatch`; 1 unless given. */
  readonly count?: number;
  /** Milliseconds from the step's start. */
  readonly start: number;
  readonly end: number;
}

/** One device's row in a timeline. */
export interface TimelineRow {
  readonly device: string;
  readonly events: readonly TimelineEvent[];
}

/** One pipelined step, drawn from what ran. */
export interface Timeline {
  /** Schedule's name. */
  readonly schedule: string;
  readonly rows: readonly TimelineRow[];
}

/** A published or peer figure drawn beside ours. */
export interface Reference {
  readonly label: string;
  readonly gainPercent: number;
  readonly source: string;
}

/** The ResNet50 comparison. */
export interface Resnet50Results {
  readonly settings: {
    readonly size: number;
    readonly batch: number;
    readonly microBatches: number;
    readonly steps: number;
    readonly devices: readonly string[];
    readonly data: string;
    readonly classes: number;
    readonly loss: string;
  };
  readonly single?: StrategyResult;
  readonly modelParallel?: StrategyResult;
  /** By schedule. */
  readonly pipeline?: Readonly<Record<string, StrategyResult>>;
  /** Peers run in the same rounds, by name: "torch single", "torch pipeline". */
  readonly peers?: Readonly<Record<string, StepResults>>;
}

/** `results.json`. */
export interface BenchResults {
  readonly machine: MachineInfo;
  readonly engine: string;
  /** ISO 8601. */
  readonly date: string;
  readonly resnet50?: Resnet50Results;
}
