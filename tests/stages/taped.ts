/** Runs the graphs of `tape_graphs.ts` forward and backward, for the tests of the tape. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { backward, type Dependence, dependence, record, weightGradients } from "../../stages/tape.ts";
import type { TapeGraph } from "./tape_graphs.ts";

/** A graph's tensors: the same for the same seed. */
export function tensorsOf({ inputs, integers = [], weights }: TapeGraph, seed: number) {
  const make = (shape: number[], i: number) => tf.randomUniform(shape, 0.3, 1.7, "float32", seed + i);
  return {
    x: inputs.map((shape, i) =>
      integers.includes(i) ? tf.randomUniform(shape, 0, 5, "int32", seed) : make(shape, i)
    ),
    w: weights.map((shape, i) => make(shape, 100 + i)),
  };
}

/** Runs a graph forward; `run` then B and W, for the gradients of inputs wanted and of weights. */
export function recorded(graph: TapeGraph, { x, w }: ReturnType<typeof tensorsOf>, seed: number) {
  const wanted = x.map(({ dtype }, i) => dtype === "float32" && !graph.unwanted?.includes(i));
  const recording = record(() => graph.forward(x, w));
  const dependent: Dependence = dependence(
    recording.nodes,
    x.map((tensor, i) => ({ tensor, wanted: wanted[i]! })),
    w.map(({ id }) => id),
  );
  const dy = recording.outputs.map(({ shape }, i) =>
    tf.randomUniform(shape, -1, 1, "float32", seed + 200 + i)
  );
  const inputs = x.filter((_, i) => wanted[i]);
  const values = (t: tf.Tensor | undefined) => t && [...t.dataSync()];
  const run = () =>
    tf.tidy(() => {
      const { inputGradients, pending } = backward(recording, dy, inputs, dependent);
      const dx = inputGradients.map(values); // read before W runs
      const byId = weightGradients(recording, pending, dependent);
      return [...dx, ...w.map(({ id }) => values(byId.get(id)))];
    });
  const dispose = () => {
    recording.dispose();
    tf.dispose([...recording.outputs, ...dy]);
  };
  return { recording, inputs, dependent, dy, run, dispose };
}

/** Names of the kernels that `body` runs. */
export function kernels(body: () => void): string[] {
  const names: string[] = [];
  const e = tf.engine() as unknown as { runKernelFunc(params: { kernelName?: string }): unknown };
  const { runKernelFunc } = e;
  e.runKernelFunc = function (params) {
    names.push(params.kernelName ?? "custom");
    return runKernelFunc.call(this, params);
  };
  try {
    body();
  } finally {
    Reflect.deleteProperty(e, "runKernelFunc");
  }
  return names;
}

/** Compares gradients. */
export function close(actual: (number[] | undefined)[], expected: number[][], label = ""): void {
  assert.equal(actual.length, expected.length);
  expected.forEach((values, i) => {
    assert.equal(actual[i]?.length, values.length, `${label} gradient ${i}`);
    values.forEach((value, j) => {
      const off = Math.abs(actual[i]![j]! - value);
      assert.ok(
        off <= 1e-5 * Math.max(1, Math.abs(value)),
        `${label} gradient ${i}: ${actual[i]}, not ${values}`,
      );
    });
  });
}
