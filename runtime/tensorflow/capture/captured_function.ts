/** A recorded graph as a function that runs as one call into TensorFlow. @module */
import type { Context } from "../binding/context.ts";
import { cstring, cstringOnce } from "../binding/cstring.ts";
import type { GraphRecorder } from "../binding/graph_recorder.ts";
import { type GraphTensor, packOutputs, type Source } from "../binding/graph_tensor.ts";
import { typeAttr } from "../binding/attributes.ts";

let defined = 0;

/** Counters of this worker's captured functions. */
export const functionCounters = {
  /** Defined and not removed. */ alive: 0,
  /** Milliseconds inside TensorFlow. */ ms: 0,
};

const EXECUTOR = cstring("executor_type");
/** Keeps a device to one core at the same speed; the default executor uses more, however it is configured. */
const SINGLE_THREADED = new TextEncoder().encode("SINGLE_THREADED_EXECUTOR");

/** A function defined in a context. */
export class CapturedFunction {
  readonly name: string;
  /** Where each input comes from, in order, and which micro-batch of several it belongs to. */
  readonly inputs: readonly { readonly source: Source; readonly replica: number }[];
  readonly outputCount: number;
  /** Nodes in the function's body. */
  readonly nodes: number;
  readonly #context: Context;
  readonly #pointer: bigint;
  readonly #key: Uint8Array<ArrayBuffer>;
  readonly #outputs: BigUint64Array<ArrayBuffer>;
  readonly #count = new Int32Array(1);

  /**
   * @param outputs tensors of `recorder`, or of another one (then passed through)
   * @param excluded nodes to leave out
   */
  constructor(
    recorder: GraphRecorder,
    outputs: readonly GraphTensor[],
    excluded: ReadonlySet<bigint> = new Set(),
  ) {
    const context = this.#context = recorder.context;
    const { tf, status } = context;
    const results = outputs.map((output) => ownResult(recorder, output));
    const body = recorder.operations.filter((operation) => !excluded.has(operation));
    const effects = recorder.effects(excluded);
    const inputs = recorder.inputs.map(({ tensor }) => tensor);
    this.name = `${recorder.label.replace(/[^A-Za-z0-9_]/g, "_")}_${defined++}`;
    this.inputs = recorder.inputs.map(({ source, replica }) => ({ source, replica }));
    this.outputCount = results.length;
    this.nodes = body.length;
    this.#key = cstringOnce(this.name);
    this.#outputs = new BigUint64Array(results.length);
    this.#pointer = tf.TF_GraphToFunctionWithControlOutputs(
      recorder.graph,
      this.#key,
      0,
      body.length,
      BigUint64Array.from(body),
      inputs.length,
      packOutputs(inputs),
      results.length,
      packOutputs(results),
      0n,
      effects.length,
      BigUint64Array.from(effects),
      0n,
      0n,
      0n,
      status,
    );
    context.check(`Capture ${recorder.label}`);
    tf.TFE_ContextAddFunction(context.pointer, this.#pointer, status);
    context.check(`Define ${recorder.label}`);
    functionCounters.alive++;
  }

  /**
   * Runs it.
   *
   * @param inputs handles in the order of `inputs`
   * @returns handles, the caller's to delete; the array is a new one
   */
  call(inputs: BigUint64Array<ArrayBuffer>): BigUint64Array<ArrayBuffer> {
    const context = this.#context;
    const { tf, status } = context;
    const op = tf.TFE_NewOp(context.pointer, this.#key, status);
    context.check(`Call ${this.name}`);
    try {
      if (context.device) tf.TFE_OpSetDevice(op, context.device, status);
      else tf.TFE_OpSetAttrString(op, EXECUTOR, SINGLE_THREADED, BigInt(SINGLE_THREADED.length));
      tf.TFE_OpAddInputList(op, inputs, inputs.length, status);
      context.check(`Give ${this.name} its inputs`);
      this.#count[0] = this.outputCount;
      const start = performance.now();
      tf.TFE_Execute(op, this.#outputs, this.#count, status);
      functionCounters.ms += performance.now() - start;
      context.check(`Run ${this.name}`);
      return this.#outputs.slice();
    } finally {
      tf.TFE_DeleteOp(op);
    }
  }

  /** Removes it from its context. */
  dispose(): void {
    const { tf, status, pointer } = this.#context;
    tf.TFE_ContextRemoveFunction(pointer, this.#key, status);
    tf.TF_DeleteFunction(this.#pointer);
    this.#context.check(`Remove ${this.name}`);
    functionCounters.alive--;
  }
}

/** A function's output must be a node of its own, not one of its inputs. */
function ownResult(recorder: GraphRecorder, output: GraphTensor): GraphTensor {
  const own = recorder.import(output);
  if (own.origin.kind !== "input") return own;
  return recorder.op("Identity", [typeAttr("T", own.dtype)], [own], 1)[0]!;
}
