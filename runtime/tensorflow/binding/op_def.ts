/** What a graph must know of an op to take it as a node. @module */
import type { Context } from "./context.ts";
import { cstring } from "./cstring.ts";
import { fields } from "./proto.ts";

/** Read off `tensorflow.OpDef`. */
export interface OpDef {
  readonly inputs: readonly {
    /** The attribute that gives the length of a list; undefined for a single tensor. */
    readonly list: string | undefined;
    /** The attribute that is the dtype; undefined where the op takes one dtype alone. */
    readonly type: string | undefined;
  }[];
  readonly stateful: boolean;
}

const INPUT_ARG = 2; // numbers of tensorflow/core/framework/op_def.proto
const IS_STATEFUL = 17;
const TYPE_ATTR = 4;
const NUMBER_ATTR = 5;
const TYPE_LIST_ATTR = 6;

const cache = new Map<string, OpDef>();
const decoder = new TextDecoder();

/** The definition of op `name`. @throws {TensorflowError} if TensorFlow has no such op */
export function opDef(context: Context, graph: bigint, name: string): OpDef {
  const known = cache.get(name);
  if (known) return known;
  const { tf, status } = context;
  const buffer = tf.TF_NewBuffer()!;
  tf.TF_GraphGetOpDef(graph, cstring(name), buffer, status);
  try {
    context.check(`Look up op ${name}`);
    const view = new Deno.UnsafePointerView(buffer); // TF_Buffer: pointer to data, length
    const bytes = new Uint8Array(Number(view.getBigUint64(8)));
    Deno.UnsafePointerView.copyInto(view.getPointer(0)!, bytes);
    const inputs: { list: string | undefined; type: string | undefined }[] = [];
    let stateful = false;
    for (const [field, value] of fields(bytes)) {
      if (field === INPUT_ARG) {
        let list: string | undefined;
        let type: string | undefined;
        for (const [part, text] of fields(value as Uint8Array)) {
          if (part === NUMBER_ATTR || part === TYPE_LIST_ATTR) list = decoder.decode(text as Uint8Array);
          if (part === TYPE_ATTR) type = decoder.decode(text as Uint8Array);
        }
        inputs.push({ list, type });
      } else if (field === IS_STATEFUL) stateful = value !== 0n;
    }
    const def = { inputs, stateful };
    cache.set(name, def);
    return def;
  } finally {
    tf.TF_DeleteBuffer(buffer);
  }
}
