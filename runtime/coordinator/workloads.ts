/** What each stage runs for a micro-batch: its tensors, and in which parts its backward runs. @module */
import type { tf } from "../../deps.ts";
import type { TensorSpec } from "../../ring/dtype.ts";
import type { Workload } from "../../stages/executor.ts";
import { inferShapes, type ModelGraph, refKey } from "../../stages/graph.ts";
import { synchronized, type SynchronizedGraph } from "../../stages/segments.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import { type BatchShape, withBatch } from "./micro_batches.ts";
import type { ResolvedOptions } from "../options.ts";

/** Numbers of micro-batches that a batched W is tried with. */
const WEIGHT_BATCHES = [2, 4];

/** Makes workloads for one model and its options. */
export class Workloads {
  /** Tensors of replicas that are no batches. */
  readonly #moments: SynchronizedGraph["moments"];

  constructor(
    readonly model: tf.LayersModel,
    readonly graph: ModelGraph,
    readonly options: ResolvedOptions,
  ) {
    this.#moments = options.syncBatchNorm && options.replicas > 1 ? synchronized(graph).moments : [];
  }

  /**
   * What a stage runs.
   *
   * @param size samples in a micro-batch
   * @param weightBatches numbers of micro-batches that one W may take
   */
  of(
    stage: StageConfig,
    shape: BatchShape,
    size: number,
    { split, weightBatches }: { split: boolean; weightBatches: readonly number[] },
  ): Workload {
    const specs = this.specs(shape, size);
    for (const { ref, shape } of this.#moments) specs.set(refKey(ref), { shape, dtype: "float32" });
    return this.#workload(stage, shape, specs, withBatch(shape.targets, size), { split, weightBatches });
  }

  #workload(
    stage: StageConfig,
    shape: BatchShape,
    specs: ReadonlyMap<string, TensorSpec>,
    targets: readonly TensorSpec[],
    { split, weightBatches }: { split: boolean; weightBatches: readonly number[] },
  ): Workload {
    const training = shape.mode === "train";
    const segments = stage.segments?.map((segment) =>
      this.#workload(segment, shape, specs, targets, { split, weightBatches })
    );
    const workload = {
      inputs: stage.inputs.map(({ ref }) => specs.get(refKey(ref))!),
      targets: shape.mode === "predict" ? [] : stage.modelOutputs.map(({ output }) => targets[output]!),
      mode: shape.mode,
      split: training && split,
      weightBatches: training && split ? weightBatches : [],
      ...(segments ? { segments } : {}),
    };
    return { ...workload, key: JSON.stringify(workload) };
  }

  /** The gradients that come back to a stage for a micro-batch. */
  outputGradients(stage: StageConfig, shape: BatchShape, size: number): TensorSpec[] {
    const specs = this.specs(shape, size);
    return stage.outputs.filter(({ needsGradient }) => needsGradient).map(({ ref }) =>
      specs.get(refKey(ref))!
    );
  }

  /** All tensors of one micro-batch, by `refKey`. */
  specs(shape: BatchShape, size: number): Map<string, TensorSpec> {
    const { model, graph } = this;
    const shapes = inferShapes(model, graph, withBatch(shape.inputs, size).map((spec) => spec.shape));
    const specs = new Map<string, TensorSpec>();
    graph.inputs.forEach(({ ref }, i) =>
      specs.set(refKey(ref), { shape: shapes.get(refKey(ref))!, dtype: shape.inputs[i]!.dtype })
    );
    for (const layer of graph.layers) {
      layer.nodes.forEach(({ outputs }, node) => {
        outputs.forEach(({ dtype }, tensor) => {
          const key = refKey({ layer: layer.name, node, tensor });
          specs.set(key, { shape: shapes.get(key)!, dtype });
        });
      });
    }
    return specs;
  }

  /** Whether W runs apart from B. */
  splits({ mode }: Pick<BatchShape, "mode">): boolean {
    return mode === "train" && this.options.schedule === "zero-bubble" &&
      this.options.devices.length > this.options.replicas;
  }

  /** Numbers of micro-batches that W over several is captured for. */
  weightBatches(microBatches: number): number[] {
    const { weightBatch } = this.options;
    const wanted = weightBatch === "auto" ? WEIGHT_BATCHES : [weightBatch];
    return wanted.filter((k) => k > 1 && k <= microBatches);
  }
}
