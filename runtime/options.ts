/** What `distribute` is told, checked before anything starts. @module */
import { type AlgorithmName, ALGORITHMS } from "../ring/group_channel.ts";
import type { PartitionSpec } from "../stages/partition.ts";
import { resolvePartition } from "../stages/partition.ts";
import { allowedCuts } from "../stages/partition.ts";
import type { ModelGraph } from "../stages/graph.ts";
import { synchronized } from "../stages/segments.ts";
import { checkBoolean, checkInteger, checkKeys, checkOneOf, checkTexts, shown } from "./checks.ts";
import { type Tail, TAILS } from "./data/distributed_sampler.ts";
import { type AvailableDevices, resolveDevices } from "./devices.ts";
import { chooseEngine, type EngineName, ENGINES, type TensorflowOptions } from "./engines.ts";
import type { WorkerDevice, WorkerEngine } from "./protocol.ts";
import { type ScheduleName, SCHEDULES } from "./schedules/schedules.ts";

/** Names of the strategies. */
export const STRATEGIES = [
  "single",
  "modelParallel",
  "pipeline",
  "dataParallel",
] as const satisfies readonly StrategyName[];

/** Name of a strategy. */
export type StrategyName = "single" | "modelParallel" | "pipeline" | "dataParallel";

/** Bytes of gradients that are added up at once, unless told otherwise. */
const BUCKET_BYTES = 25 * 2 ** 20;

/** Options of `distribute`. */
export interface DistributeOptions {
  /**
   * `single`: one device. `modelParallel`: stages on several devices, one at work at a time. `pipeline`: stages
   * at work on different micro-batches at once. `dataParallel`: a replica of the model on each device, each with
   * its share of every batch. Default: `pipeline` where there are several devices.
   */
  readonly strategy?: StrategyName;
  /** Names such as "cuda:0" or "cpu:1"; a device may be named twice. Default: what the machine has. */
  readonly devices?: readonly string[];
  /** Default: "auto". */
  readonly engine?: EngineName;
  /** Micro-batches that a batch is cut into. Default: 1, or for `pipeline` 4 for each device. */
  readonly microBatches?: number;
  /** Samples in a micro-batch, in place of `microBatches`. */
  readonly splitSize?: number;
  /**
   * Batches whose gradients make one update, which callbacks, logs and `steps` see as one batch. `trainOnBatch`
   * updates after its own. Default: 1.
   */
  readonly accumulate?: number;
  /** `pipeline`: default "1f1b". */
  readonly schedule?: ScheduleName;
  /**
   * Where the model is cut: the layer that begins each stage after the first, by name or index. Default: "auto",
   * balanced by the layers' cost.
   */
  readonly partition?: "auto" | PartitionSpec;
  /** What "auto" balances: costs measured on the devices, or estimated. Default: measured on CPU devices. */
  readonly costs?: "measured" | "estimated";
  /** `zero-bubble`: most micro-batches between F and W on a stage. Default: chosen from measured times. */
  readonly maxInFlight?: number;
  /** `zero-bubble`: micro-batches that one W takes. Default: "auto", more than 1 where that is measured faster. */
  readonly weightBatch?: "auto" | number;
  /**
   * `dataParallel`: how replicas add up their gradients. `ring`: each adds up a share, around a ring.
   * `parameterServer`: the first one adds up everything. Default: "ring".
   */
  readonly allreduce?: AlgorithmName;
  /**
   * `dataParallel`: bytes of gradients that are added up at once, while backward goes on; the model runs in as many
   * parts. Default: 25 MiB.
   */
  readonly bucketBytes?: number;
  /**
   * `dataParallel`: whether BatchNormalization takes its statistics over all replicas' samples. Default: false, over
   * each replica's own.
   */
  readonly syncBatchNorm?: boolean;
  /**
   * `dataParallel`: samples at an epoch's end that do not make equal shares. `keep`: shares differ by one sample, and
   * count by their samples. `pad`: some of the epoch's first samples come again. `drop`: they are left out.
   * Default: "keep".
   */
  readonly tail?: Tail;
  /** Whether stages are captured as functions; false runs every op by itself. Default: true. */
  readonly capture?: boolean;
  /** Seed of shuffling and of random layers. Default: 0. */
  readonly seed?: number;
  /** URLs of modules that each worker imports: custom layers, losses. */
  readonly modules?: readonly string[];
  /** Options of the engine "tensorflow". */
  readonly tensorflow?: TensorflowOptions;
  /** Checks after every step that no tensor, handle or function is left over. Default: false. */
  readonly debug?: boolean;
  /** Told what a person may want to know, a line at a time. Default: standard error. */
  readonly notice?: (line: string) => void;
}

/** The same with nothing left open; see `DistributeOptions` for what each means. */
export interface ResolvedOptions {
  /** How devices share the work. */
  readonly strategy: StrategyName;
  /** One per stage, or per replica. */
  readonly devices: readonly WorkerDevice[];
  /** Copies of the model. */
  readonly replicas: number;
  /** What computes, and where its libraries lie. */
  readonly engine: WorkerEngine;
  /** Micro-batches that a batch is cut into. */
  readonly microBatches: number;
  /** Samples in a micro-batch, where that was given instead. */
  readonly splitSize: number | undefined;
  /** Batches whose gradients make one update. */
  readonly accumulate: number;
  /** Order of F, B and W. */
  readonly schedule: ScheduleName;
  /** Where the model is cut. */
  readonly partition: "auto" | PartitionSpec;
  /** What "auto" balances. */
  readonly costs: "measured" | "estimated";
  /** `zero-bubble`: most micro-batches between F and W, where that was given. */
  readonly maxInFlight: number | undefined;
  /** `zero-bubble`: micro-batches that one W takes. */
  readonly weightBatch: "auto" | number;
  /** How replicas add up their gradients. */
  readonly allreduce: AlgorithmName;
  /** Bytes of gradients that replicas add up at once. */
  readonly bucketBytes: number;
  /** Whether BatchNormalization's statistics are those of all replicas. */
  readonly syncBatchNorm: boolean;
  /** Samples that do not make equal shares. */
  readonly tail: Tail;
  /** Whether stages are captured. */
  readonly capture: boolean;
  /** Seed of shuffling and of random layers. */
  readonly seed: number;
  /** URLs that workers import. */
  readonly modules: readonly string[];
  /** Whether leaks are looked for after every step. */
  readonly debug: boolean;
  /** Told what a person may want to know. */
  readonly notice: (line: string) => void;
}

const KNOWN = new Set<keyof DistributeOptions>([
  "strategy",
  "devices",
  "engine",
  "microBatches",
  "splitSize",
  "accumulate",
  "schedule",
  "partition",
  "costs",
  "maxInFlight",
  "weightBatch",
  "allreduce",
  "bucketBytes",
  "syncBatchNorm",
  "tail",
  "capture",
  "seed",
  "modules",
  "tensorflow",
  "debug",
  "notice",
]);

/**
 * Checks options against the model and the machine.
 *
 * @throws {TypeError|RangeError} naming the value, what is expected and the remedy
 */
export function resolveOptions(
  options: DistributeOptions,
  graph: ModelGraph,
  available?: AvailableDevices,
): ResolvedOptions {
  checkKeys("distribute", options, KNOWN);
  checkTexts("devices", options.devices, '["cpu:0", "cpu:1"]');
  checkModules(options.modules);
  checkBoolean("capture", options.capture);
  checkBoolean("debug", options.debug);
  if (options.notice !== undefined && typeof options.notice !== "function") {
    throw new TypeError(`Cannot use notice ${shown(options.notice)}: expected a function of a line`);
  }
  checkTensorflow(options.tensorflow);
  const given = resolveDevices(options.devices, available);
  const strategy = options.strategy ?? (given.length > 1 ? "pipeline" : "single");
  checkOneOf("strategy", strategy, STRATEGIES);
  const schedule = options.schedule ?? "1f1b";
  checkOneOf("schedule", schedule, SCHEDULES);
  const engineName = options.engine ?? "auto";
  checkOneOf("engine", engineName, ENGINES);
  const costs = options.costs ?? (given.some(({ kind }) => kind === "cuda") ? "estimated" : "measured");
  checkOneOf("costs", costs, ["measured", "estimated"]);
  const devices = stageDevices(strategy, given, options, graph);
  checkInteger("maxInFlight", options.maxInFlight, 1);
  const weightBatch = options.weightBatch ?? "auto";
  if (weightBatch !== "auto") checkInteger("weightBatch", weightBatch, 1);
  for (const name of ["maxInFlight", "weightBatch"] as const) {
    const value = options[name];
    if (value === undefined || name === "weightBatch" && (value === "auto" || value === 1)) continue;
    if (strategy === "pipeline" && schedule === "zero-bubble") continue;
    const instead = strategy === "pipeline" ? `schedule "${schedule}"` : `strategy "${strategy}"`;
    throw new TypeError(
      `Cannot use ${name} ${value} with ${instead}: W is a part of its own in schedule "zero-bubble" alone`,
    );
  }
  checkCut(options, strategy);
  checkInteger("accumulate", options.accumulate, 1);
  const { allreduce = "ring", bucketBytes = BUCKET_BYTES, syncBatchNorm = false, tail = "keep" } = options;
  checkOneOf("allreduce", allreduce, ALGORITHMS);
  checkInteger("bucketBytes", bucketBytes, 1);
  checkBoolean("syncBatchNorm", syncBatchNorm);
  checkOneOf("tail", tail, TAILS);
  if (options.schedule !== undefined && (strategy === "single" || strategy === "dataParallel")) {
    throw new TypeError(
      `Cannot use schedule "${schedule}" with strategy "${strategy}": it is for "pipeline", whose stages take turns`,
    );
  }
  for (const name of ["allreduce", "bucketBytes", "syncBatchNorm", "tail"] as const) {
    if (options[name] === undefined || strategy === "dataParallel") continue;
    throw new TypeError(
      `Cannot use ${name} ${options[name]} with strategy "${strategy}": it is for "dataParallel" alone`,
    );
  }
  if (strategy === "dataParallel" && Array.isArray(options.partition) && options.partition.length > 0) {
    throw new TypeError(
      `Cannot use partition ${
        JSON.stringify(options.partition)
      } with strategy "dataParallel": each device has ` +
        `the whole model; leave it out`,
    );
  }
  if (syncBatchNorm) synchronized(graph); // it may be refused
  const partition = options.partition ?? "auto";
  const replicas = strategy === "dataParallel" ? devices.length : 1;
  checkPartitionOption(partition, graph, devices.length / replicas);
  const seed = options.seed ?? 0;
  checkInteger("seed", seed, 0);
  const notice = options.notice ?? ((line: string) => console.error(line));
  return {
    strategy,
    devices,
    replicas,
    engine: chooseEngine(engineName, devices, options.tensorflow ?? {}, notice),
    microBatches: options.microBatches ?? (strategy === "pipeline" ? 4 * devices.length : 1),
    splitSize: options.splitSize,
    accumulate: options.accumulate ?? 1,
    schedule: strategy === "pipeline" ? schedule : strategy === "modelParallel" ? "gpipe" : "1f1b",
    partition,
    costs,
    maxInFlight: options.maxInFlight,
    weightBatch,
    allreduce,
    bucketBytes,
    syncBatchNorm,
    tail,
    capture: options.capture ?? true,
    seed,
    modules: options.modules ?? [],
    debug: options.debug ?? false,
    notice,
  };
}

/** What can change while the stages are up. */
export type Recut = Pick<DistributeOptions, "partition" | "microBatches" | "splitSize" | "schedule">;

/**
 * Options with another partition, number of micro-batches or schedule; what is not given stays as it is.
 *
 * @throws {TypeError|RangeError} naming the value, what is expected and the remedy
 */
export function recutOptions(resolved: ResolvedOptions, graph: ModelGraph, recut: Recut): ResolvedOptions {
  checkKeys(
    "repartition",
    recut,
    new Set<keyof Recut>(["partition", "microBatches", "splitSize", "schedule"]),
  );
  const { strategy, devices } = resolved;
  if (strategy !== "pipeline" && strategy !== "modelParallel") {
    throw new TypeError(
      `Cannot cut the model anew with strategy "${strategy}": expected "pipeline" or "modelParallel"`,
    );
  }
  const { partition = resolved.partition, schedule = resolved.schedule } = recut;
  checkOneOf("schedule", schedule, SCHEDULES);
  checkCut(recut, strategy);
  checkPartitionOption(partition, graph, devices.length);
  const cut = recut.microBatches !== undefined || recut.splitSize !== undefined ? recut : resolved;
  return {
    ...resolved,
    partition,
    schedule: strategy === "pipeline" ? schedule : resolved.schedule,
    microBatches: cut.microBatches ?? resolved.microBatches,
    splitSize: cut.splitSize,
  };
}

/** How a batch is cut. */
function checkCut({ microBatches, splitSize }: Recut, strategy: StrategyName): void {
  checkInteger("microBatches", microBatches, 1);
  checkInteger("splitSize", splitSize, 1);
  if (microBatches !== undefined && splitSize !== undefined) {
    throw new TypeError(
      `Cannot use microBatches ${microBatches} together with splitSize ${splitSize}: give one of them`,
    );
  }
  if (strategy === "modelParallel" && (microBatches ?? 1) !== 1) {
    throw new RangeError(
      `Cannot use microBatches ${microBatches} with strategy "modelParallel": ` +
        `it runs the batch as one; use strategy "pipeline"`,
    );
  }
}

function checkPartitionOption(partition: unknown, graph: ModelGraph, stages: number): void {
  if (partition === "auto") return;
  if (!Array.isArray(partition)) {
    throw new TypeError(
      `Cannot use partition ${JSON.stringify(partition)}: expected "auto" or an array of layers`,
    );
  }
  resolvePartition(graph, partition, stages);
}

/** One device per stage, or per replica. */
function stageDevices(
  strategy: StrategyName,
  given: WorkerDevice[],
  { devices, partition }: DistributeOptions,
  graph: ModelGraph,
): WorkerDevice[] {
  if (strategy === "single") {
    if (devices && devices.length > 1) {
      throw new RangeError(
        `Cannot use ${devices.length} devices with strategy "single": expected one; ` +
          `use strategy "pipeline", or name one device`,
      );
    }
    return given.slice(0, 1);
  }
  if (strategy === "dataParallel") return given;
  const most = allowedCuts(graph).filter((allowed) => allowed).length + 1;
  if (given.length > most) {
    if (devices || Array.isArray(partition)) {
      throw new RangeError(
        `Cannot cut model "${graph.name}" into ${given.length} stages: its ${graph.layers.length} layers allow ` +
          `at most ${most}; name fewer devices`,
      );
    }
    return given.slice(0, most);
  }
  return given;
}

/** A worker lies elsewhere: what is relative would be relative to it. */
function checkModules(modules: unknown): void {
  checkTexts("modules", modules, '[import.meta.resolve("./my_layer.ts")]');
  for (const module of (modules ?? []) as string[]) {
    if (URL.canParse(module)) continue;
    throw new TypeError(
      `Cannot use module "${module}": expected an absolute URL; give import.meta.resolve("${module}")`,
    );
  }
}

function checkTensorflow(options: unknown): void {
  if (options === undefined) return;
  checkKeys("tensorflow", options, ["path", "memoryGrowth", "memoryLimit", "lowerings"]);
  const { path, memoryGrowth, memoryLimit, lowerings } = options as Record<string, unknown>;
  if (path !== undefined && typeof path !== "string") {
    throw new TypeError(`Cannot use tensorflow.path ${shown(path)}: expected the path of a folder or a file`);
  }
  checkBoolean("tensorflow.memoryGrowth", memoryGrowth);
  checkInteger("tensorflow.memoryLimit", memoryLimit, 1);
  checkBoolean("tensorflow.lowerings", lowerings);
}
