/** The second pass: recorded kernel calls as captured functions, against what they gave one by one. @module */
import { tf } from "../../deps.ts";
import { BACKEND, type NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import type { KernelComparison, Message } from "../suite/messages.ts";
import type { RecordedCall, RecordedTensor } from "./recorder.ts";
import { runCaptured, UncapturableError } from "./replay.ts";

/**
 * Largest difference, relative to the larger of 1 and the value. Within a function TensorFlow may fuse ops and fold
 * constants, which moves the last bits of a sum; a kernel that computes something else is further off.
 */
const TOLERANCE = 1e-5;

/** Calls in one function: to make it ready costs TensorFlow more than to run it. */
const TOGETHER = 16;

/** Compares all calls, and tells the result of each kernel. */
export async function compareCalls(
  backend: NodeBackend,
  calls: readonly RecordedCall[],
  tell: (message: Message) => void,
): Promise<void> {
  await tf.setBackend(BACKEND); // the specs reset tfjs-core's engine
  tell({ kind: "calls", count: calls.length });
  for (const [kernel, ofKernel] of Map.groupBy(calls, ({ kernel }) => kernel)) {
    const result: Mutable<KernelComparison> = {
      kernel,
      compared: 0,
      identical: 0,
      close: 0,
      different: [],
      uncapturable: {},
    };
    for (let at = 0; at < ofKernel.length; at += TOGETHER) {
      const group = ofKernel.slice(at, at + TOGETHER);
      group.forEach(() => tell({ kind: "call", kernel }));
      compareGroup(backend, group, result);
    }
    tell({ kind: "kernel", result });
  }
}

/** Compares calls within one function; one by one if that fails, so that each one's fault is its own. */
function compareGroup(
  backend: NodeBackend,
  calls: readonly RecordedCall[],
  result: Mutable<KernelComparison>,
): void {
  let outputs: RecordedTensor[][];
  try {
    outputs = runCaptured(backend, calls);
  } catch (error) {
    if (calls.length > 1) {
      for (const call of calls) compareGroup(backend, [call], result);
      return;
    }
    const reason = (error as Error).message.split("\n")[0]!;
    if (error instanceof UncapturableError) {
      result.uncapturable = { ...result.uncapturable, [reason]: (result.uncapturable[reason] ?? 0) + 1 };
      return;
    }
    result.compared++;
    result.different = [...result.different, `${describe(calls[0]!)} fails when it is captured: ${reason}`];
    return;
  }
  for (const [i, call] of calls.entries()) {
    result.compared++;
    const difference = differenceOf(outputs[i]!, call.outputs);
    if (difference === 0) result.identical++;
    else if (typeof difference === "number") result.close++;
    else result.different = [...result.different, `${describe(call)}: captured gives ${difference}`];
  }
}

/**
 * How far tensors are from those expected: 0 for the same bits (NaN is NaN), the largest relative difference where
 * that is within the tolerance, else words.
 */
export function differenceOf(
  actual: readonly RecordedTensor[],
  expected: readonly RecordedTensor[],
): number | string {
  if (actual.length !== expected.length) return `${actual.length} outputs instead of ${expected.length}`;
  let largest = 0;
  for (const [i, { dtype, shape, values }] of expected.entries()) {
    const made = actual[i]!;
    if (made.dtype !== dtype || made.shape.join() !== shape.join()) {
      return `${made.dtype}[${made.shape}] instead of ${dtype}[${shape}]`;
    }
    if (made.values.length !== values.length) {
      return `${made.values.length} values instead of ${values.length}`;
    }
    for (const [at, value] of values.entries()) {
      const other = made.values[at]!;
      if (typeof value !== "number" || typeof other !== "number") {
        if (String(value) !== String(other)) return `another string at ${at}`;
      } else if (!Object.is(value, other)) {
        const difference = Math.abs(value - other) / Math.max(1, Math.abs(value));
        if (value !== other && !(difference <= TOLERANCE)) return `${other} at ${at} instead of ${value}`;
        largest = Math.max(largest, difference || Number.MIN_VALUE); // zeros of different sign are not the same
      }
    }
  }
  return largest;
}

/** A call in one line. */
function describe({ kernel, attributes, inputs }: RecordedCall): string {
  const tensors = [...inputs].map(([name, { dtype, shape }]) => `${name}: ${dtype}[${shape}]`);
  return `${kernel}(${tensors.join(", ")}) ${JSON.stringify(attributes)}`;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
