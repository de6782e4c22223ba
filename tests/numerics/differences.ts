/**
 * Gradients against differences of the op's own values: by single elements, which tells where one is wrong, and
 * along random directions, which sees all elements at once.
 * @module
 */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { engine } from "../../stages/tfjs.ts";
import { numbers } from "../tensorflow/engine.ts";
import { values as distinct } from "../runtime/wasm_reference.ts";

/** Values that an op is given, and how far they are moved. */
export interface Input {
  readonly shape: readonly number[];
  readonly values: Float32Array;
  readonly step: number;
}

/** An op that is checked. */
export interface GradientCase {
  /** What it is, beside the op's name. */
  readonly name: string;
  readonly inputs: readonly Input[];
  readonly op: (...inputs: tf.Tensor[]) => tf.Tensor;
  /** Largest difference, relative to the largest gradient. Default: 5e-4. */
  readonly tolerance?: number;
}

/** Elements of an input that are moved one by one. */
const SINGLE = 20;
/** Directions in which all are moved. */
const DIRECTIONS = 2;

/** Numbers in [-1, 1), for an op that is a polynomial of degree 4 at most: any step is exact. */
export function plain(shape: readonly number[], seed = 1): Input {
  return { shape, values: numbers(size(shape), seed), step: 0.25 };
}

/** Numbers around zero that lie apart by more than steps move them: their order stays. */
export function apart(shape: readonly number[], seed = 0): Input {
  return { shape, values: distinct(size(shape), seed), step: 0.01 };
}

/** Numbers between two. */
export function between(low: number, high: number, shape: readonly number[], seed = 1): Input {
  const values = numbers(size(shape), seed).map((v) => low + (v + 1) / 2 * (high - low));
  return { shape, values, step: 0.02 };
}

function size(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/**
 * Asserts that the gradients of an op are the slopes of its values.
 *
 * @param kernel an op that must be on the tape: otherwise the case checks something else
 */
export function checkGradient({ name, inputs, op, tolerance = 5e-4 }: GradientCase, kernel?: string): void {
  const tensors = (lists: readonly Float32Array[]) =>
    lists.map((list, i) => tf.tensor(list, [...inputs[i]!.shape]));
  const compute = (lists: readonly Float32Array[]) =>
    tf.tidy(() => Float32Array.from(op(...tensors(lists)).dataSync()));
  const given = inputs.map(({ values }) => values);
  const dy = numbers(compute(given).length, 77);
  const gradients = tf.tidy(() => {
    const f = (...x: tf.Tensor[]) => {
      const y = op(...x);
      const tape = engine().state.activeTape!.map(({ kernelName }) => kernelName);
      if (kernel) assert.ok(tape.includes(kernel), `${name}: no "${kernel}" among ${tape.join(", ")}`);
      return y;
    };
    const x = tensors(given);
    const shape = tf.tidy(() => op(...x).shape);
    return tf.grads(f)(x, tf.tensor(dy, shape)).map((gradient, i) => {
      assert.deepEqual(gradient.shape, inputs[i]!.shape, `${name}: shape of gradient ${i}`);
      return Float32Array.from(gradient.dataSync());
    });
  });
  /** The slope of `sum(y * dy)` along a direction, in double precision from the op's values. */
  const slope = (direction: readonly Float32Array[], step: number) => {
    const moved = (by: number) =>
      compute(given.map((list, i) => list.map((value, k) => value + by * direction[i]![k]!)));
    const difference = (by: number) => {
      const [above, below] = [moved(by), moved(-by)];
      return above.reduce((sum, value, k) => sum + (value - below[k]!) * dy[k]!, 0);
    };
    // Abramowitz and Stegun, 25.3.6: the error is of the step's fourth power.
    return (8 * difference(step) - difference(2 * step)) / (12 * step);
  };
  const zeros = () => given.map((list) => new Float32Array(list.length));
  inputs.forEach(({ step, values }, i) => {
    const gradient = gradients[i]!;
    const largest = gradient.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-2);
    for (const k of some(values.length)) {
      const direction = zeros();
      direction[i]![k] = 1;
      close(gradient[k]!, slope(direction, step), largest, `gradient of input ${i} at ${k}`);
    }
  });
  for (let seed = 1; seed <= DIRECTIONS; seed++) {
    const direction = given.map((list, i) => numbers(list.length, 1000 * seed + i));
    const step = Math.min(...inputs.map(({ step }) => step));
    let [sum, squares] = [0, 1e-4];
    gradients.forEach((gradient, i) =>
      gradient.forEach((value, k) => {
        sum += value * direction[i]![k]!;
        squares += (value * direction[i]![k]!) ** 2;
      })
    );
    close(sum, slope(direction, step), Math.sqrt(squares), `direction ${seed}`);
  }

  function close(found: number, expected: number, scale: number, what: string): void {
    const off = Math.abs(found - expected) / scale;
    assert.ok(off <= tolerance, `${name}: ${what} is ${found}, expected ${expected} (off by ${off})`);
  }
}

/** Some indices below `length`: all, or the first, the last and others. */
function some(length: number): number[] {
  if (length <= SINGLE) return Array.from({ length }, (_, i) => i);
  const stride = (length - 1) / (SINGLE - 1);
  return Array.from({ length: SINGLE }, (_, i) => Math.round(i * stride));
}
