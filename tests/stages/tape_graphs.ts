/** Small graphs on which the tape is compared with TensorFlow.js's own gradients. @module */
import { tf } from "../../deps.ts";

/** A forward, and what it runs on. */
export interface TapeGraph {
  readonly name: string;
  /** Shapes of the stage inputs; integer values where `integers` has their index. */
  readonly inputs: readonly number[][];
  readonly integers?: readonly number[];
  /** Indices of inputs whose gradient nobody wants. Integers are never wanted. */
  readonly unwanted?: readonly number[];
  readonly weights: readonly number[][];
  // deno-lint-ignore no-explicit-any
  forward(inputs: any[], weights: any[]): tf.Tensor[];
}

/** The graphs. */
export const GRAPHS: readonly TapeGraph[] = [
  {
    name: "a chain of two layers",
    inputs: [[4, 3]],
    weights: [[3, 5], [5], [5, 2], [2]],
    forward: ([x], [w1, b1, w2, b2]) => {
      const h = tf.tanh(tf.add(tf.matMul(x, w1), b1));
      return [tf.add(tf.matMul(h, w2), b2)];
    },
  },
  {
    name: "a residual branch",
    inputs: [[4, 3]],
    weights: [[3, 3]],
    forward: ([x], [w]) => {
      const h = tf.sigmoid(x);
      return [tf.add(h, tf.tanh(tf.matMul(h, w)))];
    },
  },
  {
    name: "a tensor used twice by one op, and three times in all",
    inputs: [[4, 3]],
    weights: [[3]],
    forward: ([x], [w]) => {
      const h = tf.mul(x, w);
      return [tf.add(tf.mul(h, h), tf.sin(h))];
    },
  },
  {
    name: "a stage input used four times",
    inputs: [[3]],
    weights: [[3]],
    forward: ([x], [w]) => [tf.addN([x, tf.mul(x, w), tf.square(x), tf.exp(x)])],
  },
  {
    name: "outputs that are also intermediates",
    inputs: [[4, 3]],
    weights: [[3], [3]],
    forward: ([x], [w1, w2]) => {
      const a = tf.mul(x, w1);
      const b = tf.sin(a);
      return [b, tf.mul(b, w2), a, tf.square(b)];
    },
  },
  {
    name: "one tensor as two outputs",
    inputs: [[4, 3]],
    weights: [[3]],
    forward: ([x], [w]) => {
      const y = tf.mul(x, w);
      return [y, tf.cos(y), y];
    },
  },
  {
    name: "split, one part of it unused",
    inputs: [[4, 6]],
    weights: [[6, 6]],
    forward: ([x], [w]) => {
      const [a, , c] = tf.split(tf.matMul(x, w), 3, 1) as [tf.Tensor, tf.Tensor, tf.Tensor];
      return [tf.mul(a, c), tf.square(a)];
    },
  },
  {
    name: "unstack and stack",
    inputs: [[3, 4]],
    weights: [[4]],
    forward: ([x], [w]) => {
      const rows = tf.unstack(tf.mul(x, w)) as tf.Tensor[];
      return [tf.stack([rows[2]!, tf.mul(rows[0]!, rows[1]!), rows[2]!])];
    },
  },
  {
    name: "weights reshaped, transposed and multiplied before use",
    inputs: [[4, 6]],
    weights: [[3, 4], [6], [1]],
    forward: ([x], [w, g, s]) => {
      const kernel = tf.transpose(tf.reshape(w, [2, 6]));
      const norm = tf.mul(kernel, tf.div(tf.reshape(g, [6, 1]), tf.sqrt(tf.sum(tf.square(kernel)))));
      return [tf.matMul(x, tf.mul(norm, s))];
    },
  },
  {
    name: "a weight used twice, plain and transformed",
    inputs: [[4, 3]],
    weights: [[3, 3]],
    forward: ([x], [w]) => [tf.matMul(tf.tanh(tf.matMul(x, w)), tf.add(tf.transpose(w), w))],
  },
  {
    name: "a weight split into parts",
    inputs: [[4, 3]],
    weights: [[3, 4]],
    forward: ([x], [w]) => {
      const [a, b] = tf.split(w, 2, 1) as [tf.Tensor, tf.Tensor];
      return [tf.mul(tf.matMul(x, a), tf.matMul(x, b)), tf.matMul(x, a)];
    },
  },
  {
    name: "an output made from weights alone, and a weight as output",
    inputs: [[3]],
    weights: [[3], [3]],
    forward: ([x], [w1, w2]) => [tf.mul(x, w1), tf.sin(w1), tf.mul(tf.clone(w2), 1)],
  },
  {
    name: "integer inputs that pick rows of a weight",
    inputs: [[4], [4, 3]],
    integers: [0],
    weights: [[5, 3]],
    forward: ([ids, x], [w]) => [tf.mul(tf.gather(w, ids), x)],
  },
  {
    name: "an input whose gradient is not wanted",
    inputs: [[4, 3], [4, 3]],
    unwanted: [0],
    weights: [[3]],
    forward: ([x, z], [w]) => [tf.mul(tf.mul(tf.sin(x), tf.cos(x)), tf.mul(z, w))],
  },
  {
    name: "two inputs that meet late",
    inputs: [[4, 3], [4, 2]],
    weights: [[3, 2], [2]],
    forward: ([x, z], [w, b]) => [tf.concat([tf.matMul(x, w), tf.add(z, b)], 1)],
  },
  {
    name: "broadcasts, slices, means and maxima",
    inputs: [[2, 3, 4]],
    weights: [[4], [3, 1]],
    forward: ([x], [a, b]) => {
      const y = tf.add(tf.mul(x, a), b);
      return [tf.mean(tf.slice(y, [0, 1, 0], [2, 2, 3]), 1), tf.max(y, 2), tf.softmax(y)];
    },
  },
  {
    name: "an image through convolutions and pooling",
    inputs: [[2, 8, 8, 3]],
    weights: [[3, 3, 3, 4], [3, 3, 4, 1], [1, 1, 4, 2]],
    forward: ([x], [w, d, p]) => {
      const a = tf.relu(tf.conv2d(x, w, 2, "same"));
      const b = tf.depthwiseConv2d(a as tf.Tensor4D, d, 1, "same");
      return [tf.maxPool(tf.conv2d(b as tf.Tensor4D, p, 1, "valid"), 2, 2, "valid")];
    },
  },
];
