/** The rings that one way of running needs, for every stage. @module */
import { byteLengthOf, type TensorSpec } from "../../ring/dtype.ts";
import { createRing, type RingChannel } from "../../ring/ring.ts";
import type { Workload } from "../../stages/executor.ts";
import { refKey } from "../../stages/graph.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import type { LaneSetup } from "../protocol.ts";
import type { Capacities } from "../schedules/simulate.ts";

/** Rings of one way of running: training, evaluation or prediction with micro-batches of one size. */
export interface LaneRings {
  readonly id: number;
  /** One per stage. */
  readonly setups: readonly LaneSetup[];
  /** The coordinator's ends: inputs and targets, with which of the model's each carries. */
  readonly feeds: readonly {
    readonly kind: "input" | "target";
    readonly index: number;
    readonly channel: RingChannel;
  }[];
}

/** What rings are made for. */
export interface LaneOptions {
  readonly id: number;
  readonly stages: readonly StageConfig[];
  readonly mode: Workload["mode"];
  /** Tensors of one micro-batch by `refKey`; targets by output. */
  readonly specs: ReadonlyMap<string, TensorSpec>;
  readonly targets: readonly TensorSpec[];
  readonly capacities: Capacities;
  /** Messages that may wait in each of the coordinator's rings. */
  readonly feedCapacity: number;
}

/** Makes the rings: one for each source, destination and tensor, and separate ones each way. */
export function createLane(options: LaneOptions): LaneRings {
  const { id, stages, mode, specs, targets, capacities, feedCapacity } = options;
  const training = mode === "train";
  const feeds: { kind: "input" | "target"; index: number; channel: RingChannel }[] = [];
  const feed = (kind: "input" | "target", index: number, spec: TensorSpec, stage: number): RingChannel => {
    const name = `${kind} ${index} to stage ${stage}`;
    const channel = createRing({
      capacity: feedCapacity,
      slotBytes: byteLengthOf(spec),
      name,
      tensor: index,
    });
    feeds.push({ kind, index, channel });
    return channel;
  };
  const between = stages.slice(0, -1).map(({ outputs, index }) => {
    const ring = (ref: StageConfig["outputs"][number]["ref"], tensor: number, back: boolean) =>
      createRing({
        capacity: back ? capacities.gradients[index]! : capacities.activations[index]!,
        slotBytes: byteLengthOf(specs.get(refKey(ref))!),
        name: back
          ? `gradient of ${ref.layer} from stage ${index + 1} to ${index}`
          : `${ref.layer} from stage ${index} to ${index + 1}`,
        tensor,
      });
    return {
      activations: outputs.map(({ ref }, i) => ring(ref, i, false)),
      gradients: training
        ? outputs.flatMap(({ ref, needsGradient }, i) => needsGradient ? [ring(ref, i, true)] : [])
        : [],
    };
  });
  const setups = stages.map((stage, s): LaneSetup => {
    const received = between[s - 1]?.activations ?? [];
    let next = 0;
    const inputs = stage.inputs.map(({ ref, modelInput }) =>
      modelInput === undefined ? received[next++]! : feed("input", modelInput, specs.get(refKey(ref))!, s)
    );
    return {
      id,
      inputs,
      targets: mode === "predict"
        ? []
        : stage.modelOutputs.map(({ output }) => feed("target", output, targets[output]!, s)),
      outputs: between[s]?.activations ?? [],
      outputGradients: between[s]?.gradients ?? [],
      inputGradients: between[s - 1]?.gradients ?? [],
    };
  });
  return { id, setups, feeds };
}
