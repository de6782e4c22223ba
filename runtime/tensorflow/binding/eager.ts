/** Runs one op at once. @module */
import { type OpAttribute, setEagerAttributes } from "./attributes.ts";
import type { Context } from "./context.ts";
import { cstring } from "./cstring.ts";

const MAX_OUTPUTS = 256;
const outputs = new BigUint64Array(MAX_OUTPUTS);
const count = new Int32Array(1);

/**
 * Executes op `name` on the context's device.
 *
 * @param inputs tensor handles; lists of inputs stand flat
 * @param outputCount how many outputs the op has at most
 * @returns handles, the caller's to delete
 * @throws {TensorflowError} with TensorFlow's message
 */
export function execute(
  context: Context,
  name: string,
  attributes: readonly OpAttribute[],
  inputs: readonly bigint[],
  outputCount: number,
): bigint[] {
  const { tf, status } = context;
  const op = tf.TFE_NewOp(context.pointer, cstring(name), status);
  context.check(`Make op ${name}`);
  try {
    if (context.device) tf.TFE_OpSetDevice(op, context.device, status);
    for (const input of inputs) {
      tf.TFE_OpAddInput(op, input, status);
      context.check(`Give op ${name} its inputs`);
    }
    setEagerAttributes(context, op, attributes);
    const results = outputCount > MAX_OUTPUTS ? new BigUint64Array(outputCount) : outputs;
    count[0] = outputCount;
    tf.TFE_Execute(op, results, count, status);
    context.check(`Run op ${name}`);
    return Array.from(results.subarray(0, count[0]));
  } finally {
    tf.TFE_DeleteOp(op);
  }
}
