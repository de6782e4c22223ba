/** Attributes of ops, as TensorFlow.js's kernels give them, set on an eager op or on a graph's node. @module */
import type { Context } from "./context.ts";
import { cstring } from "./cstring.ts";

/** Kinds of attribute, numbered as tfjs-node's binding numbers them. */
export const ATTR_STRING = 0;
export const ATTR_INT = 1;
export const ATTR_FLOAT = 2;
export const ATTR_BOOL = 3;
export const ATTR_TYPE = 4;
export const ATTR_SHAPE = 5;

/** One attribute; an array makes a list. */
export interface OpAttribute {
  readonly name: string;
  readonly type: number;
  readonly value: string | number | boolean | readonly number[] | null | undefined;
}

/** Makes a float type attribute, the most frequent of all. */
export function typeAttr(name: string, dtype: number): OpAttribute {
  return { name, type: ATTR_TYPE, value: dtype };
}

const encoder = new TextEncoder();

/** tfjs-node's binding cuts off what is no integer, such as the seed 3.14. */
function integer(value: number): bigint {
  return BigInt(Math.trunc(value));
}

/** Sets attributes on an eager op (`TFE_Op*`). */
export function setEagerAttributes(context: Context, op: bigint, attributes: readonly OpAttribute[]): void {
  const { tf, status } = context;
  for (const { name, type, value } of attributes) {
    if (value === null || value === undefined) continue;
    const key = cstring(name);
    const list = Array.isArray(value) ? value as number[] : undefined;
    switch (type) {
      case ATTR_STRING: {
        const text = encoder.encode(value as string);
        tf.TFE_OpSetAttrString(op, key, text, BigInt(text.length));
        break;
      }
      case ATTR_INT:
        if (list) tf.TFE_OpSetAttrIntList(op, key, BigInt64Array.from(list, integer), list.length);
        else tf.TFE_OpSetAttrInt(op, key, integer(value as number));
        break;
      case ATTR_FLOAT:
        if (list) tf.TFE_OpSetAttrFloatList(op, key, Float32Array.from(list), list.length);
        else tf.TFE_OpSetAttrFloat(op, key, value as number);
        break;
      case ATTR_BOOL:
        tf.TFE_OpSetAttrBool(op, key, value ? 1 : 0);
        break;
      case ATTR_TYPE:
        if (list) tf.TFE_OpSetAttrTypeList(op, key, Int32Array.from(list), list.length);
        else tf.TFE_OpSetAttrType(op, key, value as number);
        break;
      case ATTR_SHAPE:
        tf.TFE_OpSetAttrShape(op, key, BigInt64Array.from(list!, BigInt), list!.length, status);
        context.check(`Set attribute ${name}`);
        break;
      default:
        throw new TypeError(`Cannot set attribute "${name}": unknown kind ${type}`);
    }
  }
}

/** Sets attributes on a graph's node under construction (`TF_OperationDescription*`). */
export function setGraphAttributes(context: Context, node: bigint, attributes: readonly OpAttribute[]): void {
  const { tf } = context;
  for (const { name, type, value } of attributes) {
    if (value === null || value === undefined) continue;
    const key = cstring(name);
    const list = Array.isArray(value) ? value as number[] : undefined;
    switch (type) {
      case ATTR_STRING: {
        const text = encoder.encode(value as string);
        tf.TF_SetAttrString(node, key, text, BigInt(text.length));
        break;
      }
      case ATTR_INT:
        if (list) tf.TF_SetAttrIntList(node, key, BigInt64Array.from(list, integer), list.length);
        else tf.TF_SetAttrInt(node, key, integer(value as number));
        break;
      case ATTR_FLOAT:
        if (list) tf.TF_SetAttrFloatList(node, key, Float32Array.from(list), list.length);
        else tf.TF_SetAttrFloat(node, key, value as number);
        break;
      case ATTR_BOOL:
        tf.TF_SetAttrBool(node, key, value ? 1 : 0);
        break;
      case ATTR_TYPE:
        if (list) tf.TF_SetAttrTypeList(node, key, Int32Array.from(list), list.length);
        else tf.TF_SetAttrType(node, key, value as number);
        break;
      case ATTR_SHAPE:
        tf.TF_SetAttrShape(node, key, BigInt64Array.from(list!, BigInt), list!.length);
        break;
      default:
        throw new TypeError(`Cannot set attribute "${name}": unknown kind ${type}`);
    }
  }
}
