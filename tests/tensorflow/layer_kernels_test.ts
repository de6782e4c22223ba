/** Tests of the kernels behind layers: batch normalization, ReLU's gradient, counter-based random numbers. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { typeAttr } from "../../runtime/tensorflow/binding/attributes.ts";
import { TF_FLOAT, TF_INT32, TF_UINT64 } from "../../runtime/tensorflow/binding/dtypes.ts";
import { execute } from "../../runtime/tensorflow/binding/eager.ts";
import { eagerSource } from "../../runtime/tensorflow/capture/random.ts";
import { newHandle, readHandle } from "../../runtime/tensorflow/binding/tensor.ts";
import { BATCH_NORM, BATCH_NORM_GRAD } from "../../stages/layers/batch_norm_kernel.ts";
import { RELU_GRAD } from "../../stages/layers/relu_gradient.ts";
import { blocksPerSample, philoxUniform, streamCounter, streamKey } from "../../stages/random.ts";
import { hasKernel, runKernel } from "../../stages/tfjs.ts";
import { close } from "./compare.ts";
import { engine, numbers, random, testTidy } from "./engine.ts";

const EPSILON = 1e-3;

/** `[n, h, w, channels]` and what to add to every element. */
const IMAGES: { shape: [number, number, number, number]; center: number; scale: number }[] = [
  { shape: [2, 3, 4, 5], center: 0, scale: 1 },
  { shape: [4, 1, 1, 3], center: 10, scale: 2 },
  { shape: [1, 5, 7, 1], center: -3, scale: 0.1 },
  { shape: [3, 8, 8, 16], center: 100, scale: 1 },
];

interface Norm {
  y: Float64Array;
  mean: Float64Array;
  variance: Float64Array;
}

/** Batch normalization in double precision. */
function reference(x: ArrayLike<number>, scale: ArrayLike<number>, offset: ArrayLike<number>): Norm {
  const channels = scale.length;
  const n = x.length / channels;
  const [mean, variance] = [new Float64Array(channels), new Float64Array(channels)];
  for (let i = 0; i < x.length; i++) mean[i % channels]! += x[i]! / n;
  for (let i = 0; i < x.length; i++) variance[i % channels]! += (x[i]! - mean[i % channels]!) ** 2 / n;
  const y = Float64Array.from(x, (v, i) => {
    const c = i % channels;
    return (v - mean[c]!) / Math.sqrt(variance[c]! + EPSILON) * scale[c]! + offset[c]!;
  });
  return { y, mean, variance };
}

/** The derivative of `sum(y * dy)` by each element of `argument`, by central differences. */
function slope(argument: Float64Array, y: () => Float64Array, dy: ArrayLike<number>): Float64Array {
  const sum = () => y().reduce((total, v, i) => total + v * dy[i]!, 0);
  const h = 1e-5;
  return argument.map((value, i) => {
    argument[i] = value + h;
    const above = sum();
    argument[i] = value - h;
    const below = sum();
    argument[i] = value;
    return (above - below) / (2 * h);
  });
}

for (const { shape, center, scale: spread } of IMAGES) {
  testTidy(`batch normalization of [${shape}] around ${center} is that of double precision`, () => {
    const channels = shape[3];
    const x = tf.add(tf.mul(random(shape), spread), center);
    const [scale, offset] = [tf.add(random([channels], 5), 2), random([channels], 6)];
    const dy = random(shape, 7);
    const out = runKernel(BATCH_NORM, { x, scale, offset }, { epsilon: EPSILON });
    const [y, mean, variance, a, b, c] = out as [
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
      tf.Tensor,
    ];
    const doubles = (t: tf.Tensor) => Float64Array.from(t.dataSync());
    const [x64, scale64, offset64] = [doubles(x), doubles(scale), doubles(offset)];
    const expected = reference(x64, scale64, offset64);
    // What is left of a value after its mean is taken away has lost the digits that the mean has.
    const tolerance = 1e-6 * Math.max(1, Math.abs(center) / spread);
    close(y.dataSync(), expected.y, tolerance, "y");
    close(mean.dataSync(), expected.mean, 1e-6, "mean");
    close(variance.dataSync(), expected.variance, 1e-5, "variance");
    assert.deepEqual([mean.shape, variance.shape, y.shape], [[channels], [channels], shape]);

    const plain = engine.backend.executeMultipleOutputs(
      "FusedBatchNormV3",
      [
        typeAttr("T", TF_FLOAT),
        typeAttr("U", TF_FLOAT),
        { name: "epsilon", type: 2, value: EPSILON },
        { name: "is_training", type: 3, value: true },
      ],
      [x, scale, offset, tf.tensor1d([]), tf.tensor1d([])],
      6,
    );
    const n = x.size / channels;
    close(y.dataSync(), plain[0]!.dataSync(), tolerance, "y against the fused op");
    close(mean.dataSync(), plain[1]!.dataSync(), 1e-6, "mean against the fused op");
    const biased = tf.mul(plain[2]!, (n - 1) / n);
    close(variance.dataSync(), biased.dataSync(), 1e-5, "variance against the fused op");

    const gradients = runKernel(BATCH_NORM_GRAD, { dy, x, scale, a, b, c }, { epsilon: EPSILON });
    assert.equal(gradients.length, 3);
    const again = () => reference(x64, scale64, offset64).y;
    const dys = dy.dataSync();
    const few = x.size <= 200 ? x64 : undefined;
    if (few) close(gradients[0]!.dataSync(), slope(few, again, dys), 1e-4 * Math.max(1, spread), "dx");
    close(
      gradients[1]!.dataSync(),
      slope(scale64, again, dys),
      1e-5 * Math.max(1, center / spread),
      "dscale",
    );
    close(gradients[2]!.dataSync(), slope(offset64, again, dys), 1e-5, "doffset");
  });
}

testTidy("batch normalization of one value gives its offset, and finite gradients", () => {
  const [x, scale, offset] = [tf.tensor4d([5, -2], [1, 1, 1, 2]), tf.tensor1d([2, 3]), tf.tensor1d([7, 8])];
  const [y, mean, variance, a, b, c] = runKernel(BATCH_NORM, { x, scale, offset }, { epsilon: EPSILON });
  assert.deepEqual([...y!.dataSync()], [7, 8]);
  assert.deepEqual([...mean!.dataSync()], [5, -2]);
  assert.deepEqual([...variance!.dataSync()], [0, 0]);
  const inputs = { dy: tf.ones([1, 1, 1, 2]), x, scale, a: a!, b: b!, c: c! };
  const [dx, dscale, doffset] = runKernel(BATCH_NORM_GRAD, inputs, { epsilon: EPSILON });
  assert.deepEqual([...dx!.dataSync(), ...dscale!.dataSync(), ...doffset!.dataSync()], [0, 0, 0, 0, 1, 1]);
});

testTidy("batch normalization's gradient flows through tf.grads to x, scale and offset", () => {
  const [x, scale, offset, dy] = [
    random([2, 3, 2, 3]),
    random([3], 2),
    random([3], 3),
    random([2, 3, 2, 3], 4),
  ];
  const kernel = (x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor) =>
    runKernel(BATCH_NORM, { x, scale, offset }, { epsilon: EPSILON })[0]!;
  const composed = (x: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor) => {
    const { mean, variance } = tf.moments(x, [0, 1, 2]);
    return tf.add(tf.mul(tf.div(tf.sub(x, mean), tf.sqrt(tf.add(variance, EPSILON))), scale), offset);
  };
  const ours = tf.grads(kernel)([x, scale, offset], dy);
  const theirs = tf.grads(composed)([x, scale, offset], dy);
  ours.forEach((gradient, i) => close(gradient.dataSync(), theirs[i]!.dataSync(), 1e-5, `gradient ${i}`));
});

testTidy("ReLU's gradient passes where the output is positive, and only there", () => {
  assert.ok(hasKernel(RELU_GRAD));
  const x = tf.tensor1d([-1, -0, 0, 1e-30, 2, Infinity, -Infinity]);
  const dy = tf.tensor1d([1, 2, 3, 4, -5, 6, 7]);
  assert.deepEqual([...tf.grad(tf.relu)(x, dy).dataSync()], [0, 0, 0, 4, -5, 6, 0]);
  const big = random([4, 5, 6]);
  const expected = [...big.dataSync()].map((v, i) => v > 0 ? numbers(120, 3)[i] : 0);
  close(tf.grad(tf.relu)(big, random([4, 5, 6], 3)).dataSync(), expected, 0);
  const direct = runKernel(RELU_GRAD, { dy, y: tf.relu(x) })[0]!;
  assert.deepEqual([...direct.dataSync()], [0, 0, 0, 4, -5, 6, 0]);
});

const SAMPLES: { shape: number[]; shared?: boolean }[] = [
  { shape: [3, 4] },
  { shape: [1, 1] },
  { shape: [5, 7] }, // each sample begins on a counter of its own
  { shape: [2, 3, 5, 2] },
  { shape: [64, 130] },
  { shape: [4] }, // one number a sample
  { shape: [1, 6, 3], shared: true },
];

testTidy("random numbers are philoxUniform's bit for bit, whatever the shape", () => {
  for (const { shape, shared } of SAMPLES) {
    for (
      const position of [{ seed: 0, step: 0, firstSample: 0 }, { seed: 123, step: 7, firstSample: 1000 }]
    ) {
      const made = eagerSource(engine.backend, position).uniform("dropout_1", shape, shared);
      assert.deepEqual(made.shape, shape);
      assert.deepEqual(made.dataSync(), expectedUniform("dropout_1", 0, shape, position, shared));
    }
  }
});

testTidy("random numbers differ by seed, layer, call, step and sample", () => {
  const at = { seed: 1, step: 2, firstSample: 4 };
  const draw = (
    layer: string,
    position = at,
  ) => [...eagerSource(engine.backend, position).uniform(layer, [2, 3]).dataSync()];
  const source = eagerSource(engine.backend, at);
  const [first, second] = [source.uniform("a", [2, 3]), source.uniform("a", [2, 3])].map((
    t,
  ) => [...t.dataSync()]);
  assert.deepEqual(first, draw("a"));
  assert.deepEqual(second, [...expectedUniform("a", 1, [2, 3], at)]);
  const others = [
    second,
    draw("b"),
    draw("a", { ...at, seed: 2 }), // 2 is to "a" what 1 is to "b", bit by bit
    draw("a", { ...at, step: 3 }),
    draw("a", { ...at, firstSample: 8 }),
  ];
  const all = [first!, ...others].map((values) => JSON.stringify(values));
  assert.equal(new Set(all).size, all.length);
  // Samples 4 and 5 of one draw, and sample 5 as the first of another.
  assert.deepEqual(draw("a", { ...at, firstSample: 5 }).slice(0, 3), first!.slice(3));
});

testTidy("random numbers carry from the low half of the counter to the high one", () => {
  const { context } = engine;
  const [key, counter] = [0x0123456789abcdefn, [0xffffffffffffffffn, 3n] as const];
  const inputs = [
    newHandle(context, TF_INT32, [1], Int32Array.of(12)),
    newHandle(context, TF_UINT64, [1], BigUint64Array.of(key)),
    newHandle(context, TF_UINT64, [2], BigUint64Array.from(counter)),
    newHandle(context, TF_INT32, [], Int32Array.of(1)),
  ];
  const attributes = [typeAttr("dtype", TF_FLOAT), typeAttr("Tshape", TF_INT32)];
  const [made] = execute(context, "StatelessRandomUniformV2", attributes, inputs, 1);
  assert.deepEqual(readHandle(context, made!), philoxUniform(key, counter, 12));
  for (const handle of [...inputs, made!]) context.tf.TFE_DeleteTensorHandle(handle);
});

/** What `uniform` must give: each sample's numbers cut from its blocks. */
function expectedUniform(
  layer: string,
  call: number,
  [samples, ...rest]: number[],
  position: { seed: number; step: number; firstSample: number },
  shared = false,
): Float32Array {
  const size = rest.reduce((a, b) => a * b, 1);
  const blocks = blocksPerSample(size);
  const at = { ...position, layer, call, ...(shared ? { firstSample: 0 } : {}) };
  const all = philoxUniform(streamKey(at), streamCounter(blocks, at), samples! * blocks * 4);
  return Float32Array.from({ length: samples! * size }, (_, i) => {
    const sample = Math.floor(i / size);
    return all[sample * blocks * 4 + i % size]!;
  });
}
