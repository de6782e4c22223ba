/** What goes between the segments of a replica. @module */
import { refKey, type TensorRef } from "../../stages/graph.ts";
import type { SumSlots } from "../../stages/replica_config.ts";
import type { StageConfig } from "../../stages/stage_config.ts";

/** A segment's place among the others, told once. */
export interface Wiring {
  /** Of each input, what its tensor is known by; undefined for one of the model's. */
  readonly inputs: readonly (string | undefined)[];
  /** Of the inputs whose gradient is sent back. */
  readonly inputGradients: readonly string[];
  /** Of each output. */
  readonly outputs: readonly string[];
  /** Of the outputs whose gradient comes back. */
  readonly outputGradients: readonly string[];
  /** Of the outputs that are moments, with the slot in which replicas add them up. */
  readonly moments: readonly { readonly at: string; readonly slot: number }[];
  /** The same of their gradients, where they come back. */
  readonly momentGradients: readonly { readonly at: string; readonly slot: number }[];
}

/** What a segment gives and takes. A tensor is known by where it goes. */
export function wire({ index, inputs, outputs }: StageConfig, slots: SumSlots): Wiring {
  const key = (to: number, ref: TensorRef) => `${to} ${refKey(ref)}`;
  const came = inputs.map((input) => ({ ...input, at: key(index, input.ref) }));
  const goes = outputs.map((output) => ({ ...output, at: key(output.to, output.ref) }));
  const places = (all: readonly { readonly at: string; readonly needsGradient: boolean }[]) =>
    all.flatMap(({ at, needsGradient }) => needsGradient ? [at] : []);
  const slotsOf = (all: typeof goes, way: "forward" | "backward") =>
    all.flatMap(({ at, ref }) => {
      const own = slots.moments.get(refKey(ref));
      return own ? [{ at, slot: own[way] }] : [];
    });
  return {
    inputs: came.map(({ at, modelInput }) => modelInput === undefined ? at : undefined),
    inputGradients: places(came),
    outputs: goes.map(({ at }) => at),
    outputGradients: places(goes),
    moments: slotsOf(goes, "forward"),
    momentGradients: slotsOf(goes.filter(({ needsGradient }) => needsGradient), "backward"),
  };
}
