/** What runs where, and what goes from whom to whom: computed once, before the first step. @module */
import { byteLengthOf, type TensorSpec } from "../ring/dtype.ts";
import { refKey } from "../stages/graph.ts";
import type { StageConfig } from "../stages/stage_config.ts";
import type { Capacities } from "./schedules/simulate.ts";
import { linksOf } from "../stages/routes.ts";

/** One device's part of the model. */
export interface StagePlan {
  /** Stage and, where there are several, replica: "stage 1", "replica 0". */
  readonly name: string;
  /** Its device. */
  readonly device: string;
  /** Its first layer and its last. */
  readonly layers: readonly [first: string, last: string];
  /** How many layers it has. */
  readonly layerCount: number;
  /** Bytes of its weights. */
  readonly weightBytes: number;
  /** Parts that run one after another, whose gradients are added up by themselves. */
  readonly segments: number;
}

/** A tensor's way from the stage that makes it to one that needs it. */
export interface RoutePlan {
  /** The layer that makes it. */
  readonly tensor: string;
  /** The stage that makes it. */
  readonly from: number;
  /** A later stage; not the next one for a skip. */
  readonly to: number;
  /** Of one micro-batch, batch axis first. */
  readonly shape: readonly number[];
  /** Bytes of one micro-batch. */
  readonly bytes: number;
  /** Whether a gradient of the same size comes back. */
  readonly gradient: boolean;
  /** Slots of its ring, and of its gradient's; 0 for none. */
  readonly slots: { readonly activations: number; readonly gradients: number };
}

/** What runs where. */
export interface Plan {
  /** Micro-batches that a batch is cut into. */
  readonly microBatches: number;
  /** Samples in each. */
  readonly microBatchSize: number;
  /** One per device. */
  readonly stages: readonly StagePlan[];
  /** Every tensor that goes from one stage to another. */
  readonly routes: readonly RoutePlan[];
}

/** The routes between stages, with the rings that were made for them. */
export function routePlans(
  stages: readonly StageConfig[],
  specs: ReadonlyMap<string, TensorSpec>,
  capacities: Capacities,
): RoutePlan[] {
  const all = stages.flatMap(({ index, outputs }) => outputs.map((output) => ({ ...output, from: index })));
  const links = linksOf(all);
  return all.map(({ ref, from, to, needsGradient }) => {
    const spec = specs.get(refKey(ref))!;
    const link = links.findIndex((link) => link.from === from && link.to === to);
    return {
      tensor: ref.layer,
      from,
      to,
      shape: spec.shape,
      bytes: byteLengthOf(spec),
      gradient: needsGradient,
      slots: {
        activations: capacities.activations[link]!,
        gradients: needsGradient ? capacities.gradients[link]! : 0,
      },
    };
  });
}

/** One device's part. */
export function stagePlan(config: StageConfig, name: string, device: string): StagePlan {
  const { layers, weights, segments } = config;
  return {
    name,
    device,
    layers: [layers[0]!.name, layers.at(-1)!.name],
    layerCount: layers.length,
    weightBytes: weights.reduce((sum, weight) => sum + byteLengthOf(weight), 0),
    segments: segments?.length ?? 1,
  };
}

/** A plan as text, a line for each stage and each route. */
export function formatPlan({ microBatches, microBatchSize, stages, routes }: Plan): string {
  const lines = [
    `${microBatches} micro-batch${microBatches === 1 ? "" : "es"} of ${microBatchSize} samples`,
    ...stages.map(({ name, device, layers: [first, last], layerCount, weightBytes, segments }) =>
      `${name} on ${device}: ${layerCount} layers, ${first} to ${last}, ${inBytes(weightBytes)} of weights` +
      (segments > 1 ? `, gradients in ${segments} buckets` : "")
    ),
    ...routes.map(({ tensor, from, to, shape, bytes, gradient, slots }) =>
      `stage ${from} to ${to}${to > from + 1 ? " (skip)" : ""}: ${tensor} [${shape.join(", ")}], ` +
      `${inBytes(bytes)}, ${slots.activations} slots` +
      (gradient ? `, gradient back in ${slots.gradients}` : ", no gradient")
    ),
  ];
  return lines.join("\n");
}

function inBytes(bytes: number): string {
  const [unit, name] = bytes < 1e6 ? [1e3, "kB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${Number((bytes / unit).toPrecision(3))} ${name}`;
}
