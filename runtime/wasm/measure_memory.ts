/**
 * Measures what a stage takes of WebAssembly's memory: it runs one sample of zeros, then two. What each op takes
 * grows by the same for every further sample.
 * @module
 */
import { tf } from "../../deps.ts";
import { byteLengthOf, type TensorSpec } from "../../ring/dtype.ts";
import type { MicroBatch, StageExecutor, Workload } from "../../stages/executor.ts";
import { type Growth, growth, highest, type StageMemory } from "../../stages/stage_memory.ts";
import type { LayerProbe, StageModel } from "../../stages/stage_model.ts";
import type { Around, PendingGradient } from "../../stages/tape.ts";
import type { EagerUpdate } from "../worker/eager_update.ts";
import type { Heap } from "./heap.ts";

/**
 * What the heap takes beyond what is allocated: holes between tensors. Seen at 0.5 to 2 GB, after batches of several
 * sizes: 2 to 5 % with ResNet50, up to 23 % with dense layers of 4,096 units.
 */
const WASTE = { together: 1.1, apart: 1.15 };

/** Elements of the weight that the update is tried on. */
const REHEARSED = 1024;

/** What is measured. */
export interface MeasuredStage {
  readonly executor: StageExecutor;
  readonly model: StageModel;
  readonly update: EagerUpdate;
  readonly heap: Heap;
  /** Whether the backend's own convolutions run, which keep a second copy of their weights, in another order. */
  readonly copiesWeights: boolean;
}

/** Told when one op or layer is done. */
export interface OpObserver {
  readonly probe: LayerProbe;
  readonly around: Around;
  weight(pending: PendingGradient): tf.Tensor;
}

/** Bytes that were taken above those at the beginning: the peaks of each op of an action, and what it left. */
interface Taken {
  readonly peaks: Record<"F" | "B" | "W", number[]>;
  readonly afterF: number;
  readonly afterB: number;
  /** The most that one gradient of weights is made from, and would be copied to take several at once. */
  readonly joined: number;
}

/**
 * Runs the stage on zeros. The caller resets it, whatever happens.
 *
 * @param observe hears of every op while it is set
 */
export function measureMemory(
  stage: MeasuredStage,
  workload: Workload,
  observe: (observer: OpObserver | undefined) => void,
): StageMemory {
  const { update, heap, model } = stage;
  const waste = workload.split ? WASTE.apart : WASTE.together;
  const wasted = (all: readonly Growth[]) =>
    all.map(({ fixed, perSample }) => ({ fixed: fixed * waste, perSample: perSample * waste }));
  const before = heap.taken;
  const [one, two] = [1, 2].map((samples) => run(stage, workload, samples, observe)) as [Taken, Taken];
  const bytes = (t: { shape: readonly number[]; dtype: TensorSpec["dtype"] }) => byteLengthOf(t);
  const sum = (list: readonly number[]) => list.reduce((a, b) => a + b, 0);
  const trained = model.trainable.map(({ spec }) => bytes(spec));
  const training = workload.mode === "train";
  const slots = training ? sum(trained) * update.slots.perWeight : 0;
  const slotsThere = sum(update.slots.there.map((t) => t.size * 4));
  const copies = stage.copiesWeights
    ? sum(
      model.weights.filter(({ spec }) => spec.shape.length > 1).map(({ spec }) => bytes(spec)),
    )
    : 0;
  const peaks = (action: "F" | "B" | "W") => highest(wasted(growths(one.peaks[action], two.peaks[action])));
  const [afterF, afterB, joined] = wasted([
    growth(one.afterF, two.afterF),
    growth(one.afterB, two.afterB),
    growth(one.joined, two.joined),
  ]);
  return {
    limit: heap.limit,
    held: (before + copies + Math.max(0, slots - slotsThere)) * waste,
    gradients: training ? sum(trained) * waste : 0,
    afterF: afterF!,
    afterB: afterB!,
    joined: joined!,
    peaks: {
      F: peaks("F"),
      B: peaks("B"),
      W: peaks("W"),
      U: training ? wasted([{ fixed: updatePeak(stage, Math.max(0, ...trained)), perSample: 0 }]) : [],
    },
  };
}

function run(
  { executor, model, heap }: MeasuredStage,
  workload: Workload,
  size: number,
  observe: (observer: OpObserver | undefined) => void,
): Taken {
  const specs = (list: readonly TensorSpec[]) =>
    list.map(({ shape, dtype }) => tf.zeros([size, ...shape.slice(1)], dtype as "float32"));
  const peaks: Taken["peaks"] = { F: [], B: [], W: [] };
  const microBatch: MicroBatch = { index: 0, step: 0, firstSample: 0, size, batchSize: size };
  let base = heap.taken;
  let now = peaks.F;
  let joined = 0;
  const mark = () => void now.push(heap.takePeak() - base);
  const begin = (action: "F" | "B" | "W") => {
    now = peaks[action];
    base = heap.taken;
    heap.takePeak();
  };
  observe({
    probe: { enter: mark, leave: mark },
    around: (_node, body) => {
      const made = body();
      mark();
      return made;
    },
    weight: (pending) => {
      const from = pending.overBatch?.inputs.map(({ size }) => 4 * size) ?? [];
      joined = Math.max(joined, from.reduce((sum, bytes) => sum + bytes, 0));
      const made = pending.run();
      mark();
      return made;
    },
  });
  try {
    begin("F");
    const empty = base;
    const x = specs(workload.inputs);
    const targets = specs(workload.targets);
    if (workload.mode !== "train") {
      tf.dispose(executor.infer(microBatch, x, targets, workload) as tf.Tensor[]);
      mark();
      return { peaks, afterF: 0, afterB: 0, joined };
    }
    const made = executor.forward(microBatch, x, targets, workload) as tf.Tensor[];
    mark();
    // As they will come back, of those outputs that need one.
    const shapes = made.map(({ shape, dtype }) => ({ shape, dtype }));
    tf.dispose(made);
    const afterF = heap.taken - empty;
    begin("B");
    const wanted = model.config.outputs.flatMap(({ needsGradient }, i) => needsGradient ? [shapes[i]!] : []);
    tf.dispose(executor.backward(0, wanted.map(({ shape, dtype }) => tf.zeros(shape, dtype))) as tf.Tensor[]);
    mark();
    const afterB = workload.split ? heap.taken - empty : 0;
    if (workload.split) {
      begin("W");
      executor.weight([0]);
      mark();
    }
    return { peaks, afterF, afterB, joined };
  } finally {
    observe(undefined);
    executor.reset();
  }
}

/** What the update of a weight of so many bytes takes for a while. */
function updatePeak({ update, heap }: MeasuredStage, largest: number): number {
  let peak = 0;
  let base = 0;
  update.rehearse(REHEARSED, () => {
    base = heap.taken;
    heap.takePeak();
  }, () => void (peak = heap.takePeak() - base));
  return peak / (4 * REHEARSED) * largest;
}

/** Op by op; where the two runs took other ways, the largest alone. */
function growths(one: readonly number[], two: readonly number[]): Growth[] {
  if (one.length !== two.length) return [growth(Math.max(0, ...one), Math.max(0, ...two))];
  return one.map((bytes, i) => growth(bytes, two[i]!));
}
