/** The rings that one way of running needs, for every stage. @module */
import { byteLengthOf, type TensorSpec } from "../../ring/dtype.ts";
import { createRing, type RingChannel } from "../../ring/ring.ts";
import type { Workload } from "../../stages/executor.ts";
import { refKey } from "../../stages/graph.ts";
import { linksOf } from "../../stages/routes.ts";
import type { StageConfig } from "../../stages/stage_config.ts";
import { describePlace } from "../errors.ts";
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
  /** Which of several replicas has these stages. */
  readonly replica?: number;
  readonly mode: Workload["mode"];
  /** Tensors of one micro-batch by `refKey`; targets by output. */
  readonly specs: ReadonlyMap<string, TensorSpec>;
  readonly targets: readonly TensorSpec[];
  readonly capacities: Capacities;
  /** Messages that may wait in each of the coordinator's rings. */
  readonly feedCapacity: number;
}

/**
 * Makes the rings: one for each source, destination and tensor, and separate ones each way. A stage's inputs and
 * its gradients stand in the order of its config.
 */
export function createLane(options: LaneOptions): LaneRings {
  const { id, stages, replica, mode, specs, targets, capacities, feedCapacity } = options;
  const training = mode === "train";
  const feeds: { kind: "input" | "target"; index: number; channel: RingChannel }[] = [];
  const feed = (kind: "input" | "target", index: number, spec: TensorSpec, stage: number): RingChannel => {
    const name = `${kind} ${index} to ${describePlace({ stage, replica }).toLowerCase()}`;
    const channel = createRing({
      capacity: feedCapacity,
      slotBytes: byteLengthOf(spec),
      name,
      tensor: index,
    });
    feeds.push({ kind, index, channel });
    return channel;
  };
  const links = linksOf(stages.flatMap(outgoing));
  /** What goes from one stage to another, with its rings. */
  const crossings = stages.flatMap((stage) =>
    outgoing(stage).map((route, tensor) => {
      const { ref, from, to, needsGradient } = route;
      const link = links.findIndex((link) => link.from === from && link.to === to);
      const ring = (name: string, capacity: number) =>
        createRing({ capacity, slotBytes: byteLengthOf(specs.get(refKey(ref))!), name, tensor });
      return {
        ...route,
        activations: ring(`${ref.layer} from stage ${from} to ${to}`, capacities.activations[link]!),
        gradients: training && needsGradient
          ? ring(`gradient of ${ref.layer} from stage ${to} to ${from}`, capacities.gradients[link]!)
          : undefined,
      };
    })
  );
  const setups = stages.map((stage, s): LaneSetup => {
    const sent = crossings.filter(({ from }) => from === s);
    const received = crossings.filter(({ to }) => to === s);
    let next = 0;
    const inputs = stage.inputs.map(({ ref, modelInput }) =>
      modelInput === undefined
        ? received[next++]!.activations
        : feed("input", modelInput, specs.get(refKey(ref))!, s)
    );
    return {
      id,
      inputs,
      targets: mode === "predict"
        ? []
        : stage.modelOutputs.map(({ output }) => feed("target", output, targets[output]!, s)),
      outputs: sent.map(({ activations }) => activations),
      outputGradients: sent.flatMap(({ gradients }) => gradients ?? []),
      inputGradients: received.flatMap(({ gradients }) => gradients ?? []),
    };
  });
  return { id, setups, feeds };
}

/** The routes that begin at a stage. */
export function outgoing(
  { index, outputs }: StageConfig,
): (StageConfig["outputs"][number] & { from: number })[] {
  return outputs.map((output) => ({ ...output, from: index }));
}
