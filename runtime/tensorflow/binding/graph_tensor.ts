/** Tensors of graphs under construction, and where they come from. @module */
import type { OpAttribute } from "./attributes.ts";
import type { GraphRecorder } from "./graph_recorder.ts";
import { TF_OUTPUT_BYTES } from "./symbols/types.ts";
import type { Variable } from "./variable.ts";

/** A value that the caller hands over at each call. */
export interface Argument {
  readonly kind: "argument";
  /** For errors. */
  readonly label: string;
}

/** Where a function's input comes from. */
export type Source =
  | Argument
  | { readonly kind: "variable"; readonly variable: Variable }
  | { readonly kind: "saved"; readonly tensor: GraphTensor };

/** How a node's output came about, as far as another graph may care. */
export type Origin =
  | { readonly kind: "computed" }
  | { readonly kind: "input"; readonly source: Source }
  | { readonly kind: "constant"; readonly tensor: bigint }
  | { readonly kind: "read"; readonly variable: Variable }
  | {
    readonly kind: "view";
    readonly op: string;
    readonly attributes: readonly OpAttribute[];
    readonly inputs: readonly GraphTensor[];
  };

/** An output of a node. */
export interface GraphTensor {
  readonly recorder: GraphRecorder;
  readonly operation: bigint;
  /** `TF_Output`. */
  readonly output: Uint8Array<ArrayBuffer>;
  readonly shape: readonly number[];
  /** Whether TensorFlow does not know the shape; `shape` then is a stand-in. */
  readonly open: boolean;
  readonly dtype: number;
  /** Nodes that were there before this one. */
  readonly position: number;
  readonly origin: Origin;
}

/** Thrown when something cannot be captured; the stage then runs eagerly. */
export class CaptureError extends Error {
  override readonly name = "CaptureError";
}

/** Packs `TF_Output`s into one array. */
export function packOutputs(tensors: readonly GraphTensor[]): Uint8Array<ArrayBuffer> {
  const packed = new Uint8Array(TF_OUTPUT_BYTES * tensors.length);
  tensors.forEach(({ output }, i) => packed.set(output, i * TF_OUTPUT_BYTES));
  return packed;
}
