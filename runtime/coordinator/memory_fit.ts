/** Refuses, before it starts, a step that a stage's memory would not hold, and names the batch that fits. @module */
import { bytesFor, peakFor, type StageMemory } from "../../stages/stage_memory.ts";
import type { ResolvedOptions } from "../options.ts";
import { type Action, action, type Schedule } from "../schedules/action.ts";
import { type BatchShape, cutBatch, shareOf } from "./micro_batches.ts";

/** A way of running whose memory is known. */
export interface MemoryRequest {
  /** One per worker; undefined where the engine cannot tell. */
  readonly memory: readonly (StageMemory | undefined)[];
  readonly shape: Pick<BatchShape, "mode" | "batchSize" | "joined">;
  readonly options: Pick<ResolvedOptions, "microBatches" | "splitSize" | "devices" | "replicas" | "strategy">;
  /** Training: each worker's actions, for so many micro-batches. */
  schedule(microBatches: number): Schedule;
}

/** A stage that would need more than there is. */
interface Excess {
  readonly stage: number;
  readonly bytes: number;
  readonly limit: number;
}

/**
 * Actions of a stage that keeps as few micro-batches as a schedule with W apart can.
 *
 * @param count micro-batches that one W takes
 */
export function fewestInFlight(microBatches: number, count: number): Action[] {
  const actions: Action[] = [];
  for (let first = 0; first < microBatches; first += count) {
    const taken = Math.min(count, microBatches - first);
    for (let i = first; i < first + taken; i++) actions.push(action("F", i), action("B", i));
    actions.push(action("W", first, taken));
  }
  return [...actions, action("U")];
}

/**
 * Bytes that a stage takes at most while it runs `actions`.
 *
 * @param samples in a micro-batch
 */
export function memoryNeeded(memory: StageMemory, actions: readonly Action[], samples: number): number {
  const { held, gradients, peaks } = memory;
  const [afterF, afterB] = [memory.afterF, memory.afterB].map((growth) => bytesFor(growth, samples)) as [
    number,
    number,
  ];
  let now = held;
  let most = held;
  let summed = false;
  for (const { kind, count } of actions) {
    if (kind === "R") continue; // sums lie in memory that is not the device's
    const joined = kind === "W" && count > 1 ? bytesFor(memory.joined, count * samples) : 0;
    most = Math.max(most, now + peakFor(peaks[kind === "BW" ? "B" : kind], samples) + joined);
    if (kind === "F") now += afterF;
    else if (kind === "B") now += afterB - afterF;
    else if (kind === "W") now -= afterB * count;
    else if (kind === "BW") now -= afterF;
    if ((kind === "W" || kind === "BW") && !summed) {
      summed = true;
      now += gradients;
    }
  }
  return most;
}

/** The most samples, up to `most`, for which `fits`; 0 if none. What fits some samples fits fewer. */
export function largestFitting(most: number, fits: (samples: number) => boolean): number {
  let [fitting, tooMany] = [0, most + 1];
  while (tooMany - fitting > 1) {
    const middle = (fitting + tooMany) >> 1;
    if (fits(middle)) fitting = middle;
    else tooMany = middle;
  }
  return fitting;
}

/** @throws {RangeError} if a stage's memory does not hold a step */
export function refuseTooLarge(request: MemoryRequest): void {
  const { shape: { mode, batchSize, joined = 1 }, options } = request;
  const excess = excessOf(request, batchSize);
  if (!excess) return;
  const { stage, bytes, limit } = excess;
  const { microBatchSize, microBatches } = cutBatch(request.shape, options);
  const least = mode === "train" && options.splitSize === undefined ? options.microBatches : 1;
  const fits = (samples: number) => samples < least || !excessOf(request, samples * joined);
  const most = largestFitting(batchSize / joined, fits);
  const doing = { train: "train on", evaluate: "evaluate", predict: "predict" }[mode];
  const batch = joined > 1 ? `${joined} batches of ${batchSize / joined} at once` : `a batch of ${batchSize}`;
  const parts = microBatches > 1 ? ` (micro-batches of ${microBatchSize})` : "";
  const smaller = most >= least ? [`at most ${most} samples a batch`] : [];
  const more = options.splitSize !== undefined
    ? ["a smaller splitSize"]
    : options.strategy === "modelParallel"
    ? ['strategy "pipeline"']
    : ["more micro-batches"];
  const needed = size(bytes) === size(limit) ? `just over ${size(limit)}` : size(bytes);
  throw new RangeError(
    `Cannot ${doing} ${batch}${parts} on engine "wasm": ` +
      `${options.replicas > 1 ? "replica" : "stage"} ${stage} on ${options.devices[stage]!.name} ` +
      `would need ${needed}, and WebAssembly has ` +
      `${size(limit)}; ` +
      `use ${[...smaller, ...more].join(", ")}, or engine "tensorflow"`,
  );
}

/** The stage that would be furthest beyond its memory with a batch of so many samples. */
function excessOf(
  { memory, shape, options, schedule }: MemoryRequest,
  batchSize: number,
): Excess | undefined {
  const { microBatchSize, microBatches } = cutBatch({ ...shape, batchSize }, options);
  const all = shape.mode === "train" ? schedule(microBatches) : memory.map(() => [action("F", 0)]);
  const { count } = shareOf(microBatchSize, 0, options.replicas); // the largest share
  let worst: Excess | undefined;
  memory.forEach((own, stage) => {
    if (!own) return;
    const bytes = memoryNeeded(own, all[stage]!, count);
    if (bytes > own.limit && bytes - own.limit > (worst ? worst.bytes - worst.limit : 0)) {
      worst = { stage, bytes, limit: own.limit };
    }
  });
  return worst;
}

function size(bytes: number): string {
  const [unit, name] = bytes >= 2 ** 30 - 2 ** 20 ? [2 ** 30, "GiB"] : [2 ** 20, "MiB"];
  return `${Number((bytes / unit).toPrecision(3))} ${name}`;
}
