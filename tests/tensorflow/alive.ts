/** Counts what libtensorflow has handed out and not got back. @module */
import assert from "node:assert/strict";
import type { Context } from "../../runtime/tensorflow/binding/context.ts";
import type { Tensorflow } from "../../runtime/tensorflow/library/library.ts";

/** Makers and what they make; tensor handles also come out of `TFE_Execute`. */
const MAKERS = {
  TFE_NewTensorHandle: "handle",
  TF_AllocateTensor: "tensor",
  TF_NewTensor: "tensor",
  TFE_TensorHandleResolve: "tensor",
  TF_NewGraph: "graph",
  TF_GraphToFunctionWithControlOutputs: "function",
  TFE_NewOp: "op",
} as const;

const ENDERS = {
  TFE_DeleteTensorHandle: "handle",
  TF_DeleteTensor: "tensor",
  TF_DeleteGraph: "graph",
  TF_DeleteFunction: "function",
  TFE_DeleteOp: "op",
} as const;

type Kind = typeof MAKERS[keyof typeof MAKERS];

/** Watches a context that nothing was made in yet: what is freed twice, or was never made, is an error. */
export function watch(context: Context): () => Record<Kind, number> {
  const alive: Record<Kind, Map<bigint, number>> = {
    handle: new Map(),
    tensor: new Map(),
    graph: new Map(),
    function: new Map(),
    op: new Map(),
  };
  const add = (kind: Kind, pointer: bigint) => {
    // A resolved tensor may be the same object again.
    if (pointer !== 0n) alive[kind].set(pointer, (alive[kind].get(pointer) ?? 0) + 1);
  };
  const tf = { ...context.tf } as Record<string, (...args: unknown[]) => unknown>;
  for (const [name, kind] of Object.entries(MAKERS)) {
    const make = tf[name]!;
    tf[name] = (...args) => {
      const pointer = make(...args);
      add(kind, pointer as bigint);
      return pointer;
    };
  }
  for (const [name, kind] of Object.entries(ENDERS)) {
    const end = tf[name]!;
    tf[name] = (pointer) => {
      const count = alive[kind].get(pointer as bigint);
      if (count === undefined) assert.fail(`${name} of what is not alive`);
      if (count === 1) alive[kind].delete(pointer as bigint);
      else alive[kind].set(pointer as bigint, count - 1);
      return end(pointer);
    };
  }
  const execute = tf["TFE_Execute"]!;
  tf["TFE_Execute"] = (op, outputs, count, status) => {
    execute(op, outputs, count, status);
    if (context.tf.TF_GetCode(context.status) !== 0) return;
    for (let i = 0; i < (count as Int32Array)[0]!; i++) add("handle", (outputs as BigUint64Array)[i]!);
  };
  Object.assign(context, { tf: tf as unknown as Tensorflow });
  const sum = (counts: Map<bigint, number>) => [...counts.values()].reduce((a, b) => a + b, 0);
  return () =>
    Object.fromEntries(Object.entries(alive).map(([kind, counts]) => [kind, sum(counts)])) as Record<
      Kind,
      number
    >;
}
