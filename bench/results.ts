/** What the benchmark measures: the shape of `results.json`. @module */

import type { AllreduceResults } from "./allreduce/results.ts";
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

/** Data parallel training, by how replicas add up their gradients. */
export interface DataParallelResults<Result> {
  readonly ring?: Result;
  readonly parameterServer?: Result;
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
  readonly dataParallel?: DataParallelResults<StrategyResult>;
  readonly modelParallel?: StrategyResult;
  /** By schedule. */
  readonly pipeline?: Readonly<Record<string, StrategyResult>>;
  /** Peers run in the same rounds, by name: "torch single", "torch pipeline", "torch ddp". */
  readonly peers?: Readonly<Record<string, StepResults>>;
}

/** What an epoch takes at the pace that was measured. */
export interface EpochResults {
  /** `secondsPerStep` for every batch of the training data. */
  readonly secondsPerEpoch: number;
}

/** What training came to, on data that it did not see. */
export interface Evaluation {
  /** Optimizer steps that the weights had been trained for. */
  readonly steps: number;
  readonly loss: number;
  /** Intersection over union of predicted and true masks, the mean over images, 0 to 1. */
  readonly iou: number;
}

/** One strategy of the U-Net comparison. */
export interface UnetStrategyResult extends StrategyResult, EpochResults {
  /** Absent where training was broken off. */
  readonly evaluation?: Evaluation;
}

/** One way to cut the model and its batches. */
export interface CutResult {
  /** The block that begins each stage after the first. */
  readonly partition: readonly string[];
  /** Samples in a micro-batch. */
  readonly splitSize: number;
  /** What the cost model says of it. */
  readonly predictedSeconds?: number;
  /**
   * Where it was measured: `single`'s median over the whole enumeration, divided by `speedup`, so that cuts measured
   * minutes apart can be compared on a machine that drifts.
   */
  readonly secondsPerStep?: number;
  /** Every round's seconds per step, as they were. */
  readonly rounds?: readonly number[];
  /** `single`'s seconds in the same rounds. */
  readonly singleRounds?: readonly number[];
  /** Median over rounds of `single`'s seconds divided by this cut's. */
  readonly speedup?: number;
}

/** What said that a cut is the best: the enumeration, the cost model, the command line, or the last with another. */
export type CutChooser =
  | "measured"
  | "predicted"
  | "given"
  | `given partition, ${"measured" | "predicted"} split size`
  | `given split size, ${"measured" | "predicted"} partition`;

/** The best cut of an enumeration that was broken off before strategies were trained: what was measured of it. */
export interface EnumeratedCut extends Pick<CutResult, "partition" | "splitSize"> {
  readonly secondsPerStep: number;
  readonly chosenBy: CutChooser;
}

/** The best cut, trained like the other strategies. */
export interface TrainedCut extends UnetStrategyResult {
  readonly splitSize: number;
  readonly schedule: string;
  readonly chosenBy: CutChooser;
}

/** The pipeline of the U-Net comparison. */
export interface UnetPipelineResults {
  /** An enumeration that was broken off trains none. */
  readonly best?: TrainedCut | EnumeratedCut;
  /** Every partition with every split size; the predicted ones where nothing was enumerated. */
  readonly table: readonly CutResult[];
}

/** The U-Net comparison. */
export interface UnetResults {
  readonly settings: {
    readonly size: number;
    readonly batch: number;
    /** Rounds: optimizer steps of every strategy, after one that is not timed. */
    readonly steps: number;
    readonly devices: readonly string[];
    readonly data: string;
    /** Images trained on, and held out. */
    readonly samples: number;
    readonly heldOut: number;
    readonly stepsPerEpoch: number;
    readonly loss: string;
    readonly optimizer: string;
  };
  readonly single?: UnetStrategyResult;
  readonly dataParallel?: DataParallelResults<UnetStrategyResult>;
  readonly modelParallel?: UnetStrategyResult;
  readonly pipeline?: UnetPipelineResults;
  /** Peers run in the same rounds, by name. */
  readonly peers?: Readonly<Record<string, StepResults & EpochResults>>;
}

/** `results.json`. */
export interface BenchResults {
  readonly machine: MachineInfo;
  readonly engine: string;
  /** ISO 8601. */
  readonly date: string;
  /** Whether Ctrl-C ended it before its time: it holds what was measured until then. */
  readonly interrupted?: true;
  readonly resnet50?: Resnet50Results;
  readonly unet?: UnetResults;
  /** Sums among workers. */
  readonly allreduce?: AllreduceResults;
}

/** An image that was held out, with its masks, row-major. */
export interface Example {
  readonly height: number;
  readonly width: number;
  /** `[height, width, 3]`, 0 to 255. */
  readonly image: Uint8Array;
  /** `[height, width]`, 0 or 255. */
  readonly mask: Uint8Array;
  /** `[height, width]`: how sure the model is that a pixel belongs to the mask, 0 to 255. */
  readonly prediction: Uint8Array;
}

/** What a report shows beside the figures. */
export interface ReportExtras {
  /** One step of each strategy that has several stages, by comparison. */
  readonly timelines?: Readonly<Partial<Record<"resnet50" | "unet", readonly Timeline[]>>>;
  /** Held-out images and what the U-Net makes of them. */
  readonly examples?: readonly Example[];
}
