/** Compares ops on the backend "wasm" with those of the backend "cpu", and gradients with differences. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { sizeOf } from "../../ring/dtype.ts";

/** Computes one tensor from several. */
export type Op = (...inputs: tf.Tensor[]) => tf.Tensor;

/** How an op is checked. */
export interface Check {
  /** Shapes of the inputs. */
  readonly shapes: readonly number[][];
  readonly op: Op;
  /** Its gradients, given the output's first; the default are those that TensorFlow.js has for it. */
  readonly gradients?: (dy: tf.Tensor, ...inputs: tf.Tensor[]) => tf.Tensor[];
  /** Whether values are compared with those of the backend "cpu". Default: true. */
  readonly cpu?: boolean;
}

/** Half the distance between two inputs' values: a maximum stays where it is. */
const STEP = 0.02;

/** Checks values with the backend "cpu", gradients with differences, and that no tensor is left over. */
export async function check(name: string, { shapes, op, gradients, cpu = true }: Check): Promise<void> {
  const inputs = shapes.map((shape, i) => values(sizeOf(shape), i));
  const tensors = () => inputs.map((list, i) => tf.tensor(list, shapes[i]));
  const compute = (lists: Float32Array[]) =>
    tf.tidy(() => op(...lists.map((list, i) => tf.tensor(list, shapes[i]))).dataSync()) as Float32Array;
  await tf.setBackend("wasm");
  const before = tf.memory();
  const y = compute(inputs);
  const dy = values(y.length, 9);
  const found = tf.tidy(() => {
    const x = tensors();
    const at = (t: tf.Tensor) => Float32Array.from(t.dataSync() as Float32Array);
    const shape = op(...x).shape;
    const g = tf.tensor(dy, shape);
    if (gradients) return gradients(g, ...x).map(at);
    return tf.grads((...x: tf.Tensor[]) => tf.sum(tf.mul(op(...x), g)))(x).map(at);
  });
  found.forEach((gradient, i) => {
    const expected = inputs[i]!.map((_, at) => {
      const moved = (by: number) =>
        compute(inputs.map((list, j) => j === i ? list.map((v, k) => k === at ? v + by : v) : list));
      const [up, down] = [moved(STEP), moved(-STEP)];
      return up.reduce((sum, value, k) => sum + (value - down[k]!) * dy[k]!, 0) / (2 * STEP);
    });
    assertClose(gradient, expected, 2e-3, `${name}: gradient of input ${i}`);
  });
  const after = tf.memory();
  assert.deepEqual(
    [after.numTensors, after.numDataBuffers],
    [before.numTensors, before.numDataBuffers],
    `${name}: tensors are left over`,
  );
  if (!cpu) return;
  await tf.setBackend("cpu");
  assertClose(y, compute(inputs), 1e-5, `${name}: value`);
}

/** Checks that an op gives the same on both backends: shape, dtype and values. */
export async function same(name: string, op: () => tf.Tensor | tf.Tensor[]): Promise<void> {
  const results: unknown[] = [];
  const numbers: Float32Array[] = [];
  for (const backend of ["cpu", "wasm"]) {
    await tf.setBackend(backend);
    const before = tf.memory();
    tf.tidy(() => {
      const outputs = [op()].flat();
      results.push(outputs.map(({ shape, dtype }) => ({ shape, dtype })));
      numbers.push(Float32Array.from(outputs.flatMap((t) => [...t.dataSync()])));
    });
    const after = tf.memory();
    assert.deepEqual(
      [after.numTensors, after.numDataBuffers],
      [before.numTensors, before.numDataBuffers],
      `${name} on ${backend}: tensors are left over`,
    );
  }
  assert.deepEqual(results[1], results[0], name);
  assertClose(numbers[1]!, numbers[0]!, 3e-5, name);
}

/** Asserts that numbers differ by little, relative to the largest. */
export function assertClose(
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
  message: string,
): void {
  assert.equal(found.length, expected.length, `${message}: length`);
  let largest = 1e-6;
  for (let i = 0; i < expected.length; i++) {
    if (Number.isFinite(expected[i])) largest = Math.max(largest, Math.abs(expected[i]!));
  }
  for (let i = 0; i < expected.length; i++) {
    if (Object.is(found[i], expected[i])) continue; // infinite, or not a number
    const difference = Math.abs(found[i]! - expected[i]!) / largest;
    assert.ok(difference <= tolerance, `${message}: ${found[i]} at ${i}, expected ${expected[i]}`);
  }
}

/** Numbers around zero, no two of them equal, in an order that looks like none. */
export function values(count: number, seed: number): Float32Array {
  const list = Float32Array.from({ length: count }, (_, i) => (i - (count >> 1) + 0.5) * STEP * 2.5);
  let state = seed * 7919 + 1;
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    const j = (state >>> 8) % (i + 1);
    [list[i], list[j]] = [list[j]!, list[i]!];
  }
  return list;
}

/** A tensor of such numbers. */
export function tensor(shape: number[], seed = 0): tf.Tensor {
  return tf.tensor(values(sizeOf(shape), seed), shape);
}
