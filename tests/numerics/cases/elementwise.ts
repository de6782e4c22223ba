/** Cases of ops that go element by element, by kernel. @module */
import { tf } from "../../../deps.ts";
import { apart, between, type GradientCase, type Input, plain } from "../differences.ts";
import type { Cases } from "./cases.ts";

type Unary = (x: tf.Tensor) => tf.Tensor;

const SHAPE = [3, 5];

function unary(op: Unary, ...inputs: Input[]): GradientCase[] {
  return inputs.map((input, i) => ({ name: `input ${i}`, inputs: [input], op: (x) => op(x!) }));
}

/** Values of both signs, none near zero, where a function bends. */
function bent(): Input[] {
  return [between(0.2, 2, SHAPE), between(-2, -0.2, SHAPE, 2)];
}

/** Shapes that broadcast to each other, and one that does not need to. */
const PAIRS: readonly (readonly [number[], number[]])[] = [
  [[3, 4], [3, 4]],
  [[3, 4], [4]],
  [[2, 1, 3], [2, 4, 1]],
  [[], [2, 3]],
  [[2, 3, 2, 2], [3, 1, 2]],
  [[1, 3], [2, 1]],
];

function binary(
  op: (a: tf.Tensor, b: tf.Tensor) => tf.Tensor,
  first: (shape: number[], seed: number) => Input,
  second = first,
): GradientCase[] {
  return PAIRS.map(([a, b]) => ({
    name: `[${a}] and [${b}]`,
    inputs: [first(a, 1), second(b, 2)],
    op: (a, b) => op(a!, b!),
  }));
}

/** Of two inputs whose values never come near each other. */
function ordered(op: (a: tf.Tensor, b: tf.Tensor) => tf.Tensor): GradientCase[] {
  const evens = (shape: number[]) => shifted(apart(shape, 3), 0);
  const odds = (shape: number[]) => shifted(apart(shape, 4), 0.025);
  return binary(op, evens, odds).map((one) => ({
    ...one,
    inputs: one.inputs.map((input) => ({ ...input, step: 0.005 })),
    tolerance: 1e-3,
  }));
}

function shifted(input: Input, by: number): Input {
  return { ...input, values: input.values.map((value) => value + by) };
}

const positive = (shape: number[], seed: number) => between(0.5, 2, shape, seed);
const signed = (shape: number[], seed: number) => between(-1.5, 1.5, shape, seed);
const numbersOf = (shape: number[], seed: number) => plain(shape, seed);

/** A function whose slope is zero wherever it has one. */
function flat(op: Unary): GradientCase[] {
  return unary((x) => tf.cast(op(x), "float32"), between(0.2, 0.8, SHAPE), between(-1.4, -1.1, SHAPE));
}

export const ELEMENTWISE: Cases = {
  [tf.Abs]: unary(tf.abs, ...bent()),
  [tf.Acos]: unary(tf.acos, between(-0.7, 0.7, SHAPE)),
  [tf.Acosh]: unary(tf.acosh, between(1.5, 3, SHAPE)),
  [tf.Asin]: unary(tf.asin, between(-0.7, 0.7, SHAPE)),
  [tf.Asinh]: unary(tf.asinh, between(-2, 2, SHAPE)),
  [tf.Atan]: unary(tf.atan, between(-2, 2, SHAPE)),
  [tf.Atanh]: unary(tf.atanh, between(-0.6, 0.6, SHAPE)),
  [tf.Cast]: unary((x) => tf.cast(tf.cast(x, "float32"), "float32"), plain(SHAPE)),
  [tf.Ceil]: flat(tf.ceil),
  [tf.ClipByValue]: [
    {
      name: "some of them",
      inputs: [apart([4, 5])],
      op: (x) => tf.clipByValue(x!, -0.3, 0.2),
    },
  ],
  [tf.Cos]: unary(tf.cos, between(-2, 2, SHAPE)),
  [tf.Cosh]: unary(tf.cosh, between(-2, 2, SHAPE)),
  [tf.Elu]: unary(tf.elu, ...bent(), between(-6, -2, SHAPE)),
  [tf.Erf]: unary(tf.erf, between(-2, 2, SHAPE)),
  [tf.Exp]: unary(tf.exp, between(-2, 2, SHAPE)),
  [tf.Expm1]: unary(tf.expm1, between(-2, 2, SHAPE)),
  [tf.Floor]: flat(tf.floor),
  [tf.Identity]: unary(tf.clone, plain(SHAPE)),
  [tf.IsFinite]: flat(tf.isFinite),
  [tf.IsInf]: flat(tf.isInf),
  [tf.IsNan]: flat(tf.isNaN),
  [tf.LeakyRelu]: unary((x) => tf.leakyRelu(x, 0.3), ...bent()),
  [tf.Log]: unary(tf.log, between(0.5, 3, SHAPE)),
  [tf.Log1p]: unary(tf.log1p, between(-0.4, 2, SHAPE)),
  [tf.Neg]: unary(tf.neg, plain(SHAPE)),
  [tf.OnesLike]: unary((x) => tf.mul(tf.onesLike(x), x), plain(SHAPE)),
  [tf.Reciprocal]: unary(tf.reciprocal, between(0.5, 2, SHAPE), between(-2, -0.5, SHAPE)),
  [tf.Relu]: unary(tf.relu, ...bent()),
  [tf.Relu6]: unary(tf.relu6, ...bent(), between(5.1, 5.9, SHAPE), between(6.1, 7, SHAPE)),
  [tf.Round]: flat((x) => tf.round(tf.mul(x, 0.5))),
  [tf.Rsqrt]: unary(tf.rsqrt, between(0.5, 2, SHAPE)),
  [tf.Selu]: unary(tf.selu, ...bent()),
  [tf.Sigmoid]: unary(tf.sigmoid, between(-4, 4, SHAPE)),
  [tf.Sign]: flat(tf.sign),
  [tf.Sin]: unary(tf.sin, between(-2, 2, SHAPE)),
  [tf.Sinh]: unary(tf.sinh, between(-2, 2, SHAPE)),
  [tf.Softplus]: unary(tf.softplus, between(-4, 4, SHAPE)),
  [tf.Sqrt]: unary(tf.sqrt, between(0.5, 2, SHAPE)),
  [tf.Square]: unary(tf.square, plain(SHAPE)),
  [tf.Step]: flat((x) => tf.step(x, 0.3)),
  [tf.Tan]: unary(tf.tan, between(-0.8, 0.8, SHAPE)),
  [tf.Tanh]: unary(tf.tanh, between(-2, 2, SHAPE)),
  [tf.ZerosLike]: unary((x) => tf.add(tf.zerosLike(x), x), plain(SHAPE)),
  [tf.Add]: binary(tf.add, numbersOf),
  [tf.AddN]: [
    {
      name: "three",
      inputs: [plain([2, 3]), plain([2, 3], 2), plain([2, 3], 3)],
      op: (...all) => tf.addN(all),
    },
  ],
  [tf.Atan2]: binary(tf.atan2, positive, signed),
  [tf.FloorDiv]: binary(
    (a, b) => tf.floorDiv(a, b),
    (shape, seed) => between(2.2, 2.4, shape, seed),
    positive,
  )
    .map((one) => ({ ...one, inputs: [one.inputs[0]!, between(0.85, 1, one.inputs[1]!.shape, 2)] })),
  [tf.Maximum]: ordered(tf.maximum),
  [tf.Minimum]: ordered(tf.minimum),
  [tf.Mod]: binary(
    tf.mod,
    (shape, seed) => between(2.3, 2.6, shape, seed),
    (shape, seed) => between(0.9, 1.1, shape, seed),
  ),
  [tf.Multiply]: binary(tf.mul, numbersOf),
  [tf.Pow]: [
    ...binary(tf.pow, positive, signed),
    {
      name: "whole powers of numbers below zero",
      inputs: [between(-2, -0.5, SHAPE)],
      op: (x) => tf.add(tf.pow(x!, 3), tf.pow(x!, 2)),
    },
  ],
  [tf.Prelu]: [[3, 4], [4], [1, 4], [3, 1]].flatMap((shape) =>
    bent().map(({ values, step }) => ({
      name: `slopes [${shape}]`,
      inputs: [{ shape: [2, 3, 4], values: repeat(values, 24), step }, plain(shape)],
      op: (x, alpha) => tf.prelu(x!, alpha!),
    }))
  ),
  [tf.RealDiv]: binary(tf.div, numbersOf, positive),
  [tf.SquaredDifference]: binary(tf.squaredDifference, numbersOf),
  [tf.Sub]: binary(tf.sub, numbersOf),
  [tf.GreaterEqual]: [
    {
      name: "as numbers",
      inputs: [apart(SHAPE)],
      op: (x) => tf.add(x!, tf.cast(tf.greaterEqual(x!, 0), "float32")),
    },
  ],
  [tf.Select]: [
    {
      name: "of one shape",
      inputs: [plain([3, 4]), plain([3, 4], 2)],
      op: (a, b) => tf.where(tf.tensor2d([0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0], [3, 4], "bool"), a!, b!),
    },
    {
      name: "broadcast",
      inputs: [plain([3, 4]), plain([4], 2)],
      op: (a, b) => tf.where(tf.tensor2d([0, 1, 1], [3, 1], "bool"), a!, b!),
    },
  ],
};

function repeat(values: Float32Array, length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => values[i % values.length]!);
}
