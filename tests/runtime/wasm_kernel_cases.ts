/** Tests of kernels of the engine "wasm", whether they are compositions or WebAssembly of Stagger's own. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { sizeOf } from "../../ring/dtype.ts";
import type { WasmBackend } from "../../runtime/wasm/backend.ts";
import { runKernel } from "../../stages/tfjs.ts";
import { check, same, tensor, values } from "./wasm_reference.ts";

type Pad = "same" | "valid" | number | tf.backend_util.ExplicitPadding;

Deno.test("wasm convolves, and gives gradients of input and filter", async () => {
  const cases: [
    height: number,
    width: number,
    kernel: number[],
    stride: number,
    pad: Pad,
    dilation?: number,
  ][] = [
    [5, 7, [3, 3], 1, "same"],
    [5, 6, [3, 2], 1, "valid"],
    [6, 7, [3, 3], 2, "same"],
    [6, 7, [2, 3], 2, "valid"],
    [7, 9, [2, 2], 3, "same"], // steps over pixels: no padding, and a column that no filter reaches
    [8, 8, [3, 3], 3, "valid"],
    [4, 5, [1, 1], 1, "same"],
    [4, 5, [1, 1], 2, "valid"],
    [6, 6, [1, 1], 2, "same"],
    [5, 4, [1, 1], 1, 1],
    [5, 6, [3, 3], 2, [[0, 0], [2, 0], [1, 3], [0, 0]]],
    [6, 7, [3, 2], 1, "same", 2],
    [7, 7, [2, 3], 1, "valid", 2],
  ];
  for (const [height, width, kernel, stride, pad, dilation = 1] of cases) {
    const inputShape = [2, height, width, 3];
    const filterShape = [...kernel, 3, 4];
    const attributes = {
      strides: [stride, stride],
      pad,
      dataFormat: "NHWC",
      dilations: [dilation, dilation],
      dimRoundingMode: typeof pad === "string" ? undefined : "floor",
    };
    await check(
      `conv2d ${kernel} of ${height}x${width}, stride ${stride}, pad ${pad}, dilation ${dilation}`,
      {
        shapes: [inputShape, filterShape],
        op: (x, filter) => runKernel(tf.Conv2D, { x: x!, filter: filter! }, attributes)[0]!,
        gradients: (dy, x, filter) => [
          runKernel(tf.Conv2DBackpropInput, { dy, filter: filter! }, { ...attributes, inputShape })[0]!,
          runKernel(tf.Conv2DBackpropFilter, { dy, x: x! }, { ...attributes, filterShape })[0]!,
        ],
      },
    );
  }
});

Deno.test("wasm convolves by channel, and gives gradients of input and filter", async () => {
  const cases: [size: number, kernel: number, stride: number, pad: "same" | "valid", multiplier: number][] = [
    [5, 3, 1, "same", 1],
    [6, 3, 2, "same", 1],
    [6, 2, 1, "valid", 2],
    [7, 3, 2, "same", 3],
    [6, 3, 2, "valid", 2],
    [9, 2, 3, "same", 1],
  ];
  for (const [size, kernel, stride, pad, multiplier] of cases) {
    await check(`depthwiseConv2d ${kernel} of ${size}, stride ${stride}, pad ${pad}, times ${multiplier}`, {
      shapes: [[2, size, size + 1, 3], [kernel, kernel, 3, multiplier]],
      op: (x, filter) => tf.depthwiseConv2d(x as tf.Tensor4D, filter as tf.Tensor4D, stride, pad),
    });
  }
});

Deno.test("wasm pools values below zero, and gives their gradients", async () => {
  const cases: [size: number, window: number, stride: number, pad: "same" | "valid"][] = [
    [5, 2, 2, "valid"],
    [5, 3, 2, "same"],
    [6, 3, 1, "same"],
    [7, 2, 3, "same"],
    [6, 3, 2, "valid"],
  ];
  for (const [size, window, stride, pad] of cases) {
    const name = `${window} of ${size}, stride ${stride}, pad ${pad}`;
    const shapes = [[2, size, size + 1, 3]];
    await check(`maxPool ${name}`, {
      shapes,
      op: (x) => tf.maxPool(x as tf.Tensor4D, window, stride, pad),
    });
    await check(`avgPool ${name}`, {
      shapes,
      op: (x) => tf.avgPool(x as tf.Tensor4D, window, stride, pad),
    });
  }
});

Deno.test("wasm gives the gradient of a maximum to the first of equal values", async () => {
  await same("maxPool of ties", () => {
    const x = tf.tensor4d([0, 0, -1, -1, 0, 3, -1, 3, -1], [1, 3, 3, 1]);
    return tf.grad((x: tf.Tensor) => tf.maxPool(x as tf.Tensor4D, 2, 1, "valid"))(x, tensor([1, 2, 2, 1]));
  });
});

Deno.test("wasm convolves and pools volumes, and gives their gradients", async () => {
  type Three = [number, number, number];
  const cases: [window: Three, stride: Three, pad: "same" | "valid"][] = [
    [[2, 2, 2], [1, 1, 1], "same"],
    [[2, 3, 2], [2, 1, 2], "valid"],
    [[3, 2, 3], [2, 2, 2], "same"],
    [[1, 1, 1], [2, 2, 2], "same"],
  ];
  for (const [window, stride, pad] of cases) {
    const name = `${window}, stride ${stride}, pad ${pad}`;
    const shapes = [[2, 4, 5, 3, 2]];
    // The backend "cpu" pads by less than nothing where the stride steps over pixels.
    const cpu = window[0] >= stride[0];
    await check(`conv3d ${name}`, {
      shapes: [...shapes, [...window, 2, 3]],
      op: (x, filter) => tf.conv3d(x as tf.Tensor5D, filter as tf.Tensor5D, stride, pad),
      cpu,
    });
    await check(`maxPool3d ${name}`, {
      shapes,
      op: (x) => tf.maxPool3d(x as tf.Tensor5D, window, stride, pad),
      cpu,
    });
    await check(`avgPool3d ${name}`, {
      shapes,
      op: (x) => tf.avgPool3d(x as tf.Tensor5D, window, stride, pad),
      cpu,
    });
  }
});

Deno.test("wasm convolves over many blocks, and where filters take part of a vector", async () => {
  // [batch, height, width, in, filter, out, stride, pad]: more rows, columns or depth than a block has, and
  // channels that are no multiple of four, on either side.
  const cases: [number, number, number, number, number, number, number, "same" | "valid"][] = [
    [2, 9, 9, 5, 3, 7, 1, "same"],
    [1, 13, 12, 3, 3, 13, 2, "same"],
    [3, 4, 5, 64, 3, 9, 1, "same"], // depth 576
    [1, 3, 3, 6, 1, 520, 1, "same"], // columns 520
    [2, 12, 11, 4, 1, 3, 1, "valid"], // rows 264
    [2, 7, 7, 8, 5, 4, 3, "valid"],
  ];
  for (const [batch, height, width, inChannels, filter, outChannels, stride, pad] of cases) {
    const op = (x: tf.Tensor, w: tf.Tensor) => tf.conv2d(x as tf.Tensor4D, w as tf.Tensor4D, stride, pad);
    const [xShape, wShape] = [[batch, height, width, inChannels], [filter, filter, inChannels, outChannels]];
    const name = `conv2d [${xShape}] by [${wShape}], stride ${stride}, ${pad}`;
    await same(name, () => op(tensor(xShape), tensor(wShape, 1)));
    await same(
      `gradients of ${name}`,
      () => tf.grads((x, w) => tf.sum(tf.square(op(x!, w!))))([tensor(xShape), tensor(wShape, 1)]),
    );
  }
});

Deno.test("wasm resizes images, and gives the gradients", async () => {
  for (const [height, width] of [[6, 9], [2, 2], [4, 3], [1, 5], [7, 1]]) {
    for (const [alignCorners, halfPixel] of [[false, false], [true, false], [false, true]]) {
      for (const method of ["resizeNearestNeighbor", "resizeBilinear"] as const) {
        await check(`${method} to ${height}x${width}, corners ${alignCorners}, half pixels ${halfPixel}`, {
          shapes: [[3, 4, 3, 5]],
          op: (x) => tf.image[method](x as tf.Tensor4D, [height!, width!], alignCorners, halfPixel),
        });
      }
    }
  }
});

Deno.test("wasm compares, chooses and takes extremes, of many values and of one", async () => {
  const operations = {
    equal: tf.equal,
    notEqual: tf.notEqual,
    greater: tf.greater,
    greaterEqual: tf.greaterEqual,
    less: tf.less,
    lessEqual: tf.lessEqual,
    maximum: tf.maximum,
    minimum: tf.minimum,
  };
  for (const [name, op] of Object.entries(operations)) {
    for (const size of [1, 3, 16, 37]) {
      const a = () => tf.concat([tensor([size]), tf.tensor1d([0.5, NaN, -Infinity])]);
      const b = () => tf.concat([tf.reverse(tensor([size])), tf.tensor1d([0.5, 1, -1])]);
      await same(`${name} of ${size}`, () => op(a(), b()));
      await same(`${name} of ${size} and one`, () => op(b(), 0.1));
      await same(`${name} of one and ${size}`, () => op(0.1, b()));
    }
    await same(`${name} of rows and a column`, () => op(tensor([3, 5]), tensor([3, 1], 1)));
    await same(`${name} of nothing`, () => op(tf.zeros([0, 2]), tf.zeros([0, 2])));
    await same(
      `${name} of integers`,
      () => op(tf.tensor1d([1, 2, 3], "int32"), tf.tensor1d([3, 2, 1], "int32")),
    );
  }
  for (const size of [1, 4, 19]) {
    const odd = () => tf.tensor1d(Array.from({ length: size }, (_, i) => i % 3), "bool");
    await same(`where of ${size}`, () => tf.where(odd(), tensor([size]), tensor([size], 1)));
    await same(
      `where of ${size} integers`,
      () => tf.where(odd(), tf.range(0, size, 1, "int32"), tf.zeros([size], "int32")),
    );
    await same(`cast of ${size} truth values`, () => tf.cast(odd(), "float32"));
  }
});

Deno.test("wasm takes the hyperbolic tangent within a few units in the last place", async () => {
  await tf.setBackend("wasm");
  const x = [0, -0, 1e-5, -3e-4, 5e-4, 0.1, -0.7, 1.5, 4, -7.5, 7.9, 9, -20, Infinity, -Infinity, NaN];
  const found = tf.tidy(() => tf.tanh(x).dataSync());
  x.forEach((value, i) => {
    const expected = Math.tanh(value);
    const close = Object.is(found[i], Math.fround(expected)) ||
      Math.abs(found[i]! - expected) <= 4 * 2 ** -24 * Math.abs(expected);
    assert.ok(close, `tanh(${value}) is ${found[i]}, expected ${expected}`);
  });
});

Deno.test("wasm concatenates, tiles and gathers tensors of every dtype", async () => {
  const kinds: [string, (shape: number[], seed?: number) => tf.Tensor][] = [
    ["float32", tensor],
    ["int32", (shape, seed = 0) => tf.range(seed, seed + sizeOf(shape), 1, "int32").reshape(shape)],
    ["bool", (shape, seed) => tf.greater(tensor(shape, seed), 0)],
  ];
  for (const [dtype, make] of kinds) {
    for (const axis of [0, 1, -1]) {
      const part = (length: number) => [2, 3, 5].map((dim, i) => i === (axis + 3) % 3 ? length : dim);
      await same(
        `concat along ${axis} ${dtype}`,
        () => tf.concat([make(part(2)), make(part(0)), make(part(4), 1), make(part(1), 2)], axis),
      );
    }
    for (const reps of [[1, 1, 1], [2, 1, 3], [1, 4, 1], [3, 2, 2], [2, 0, 1]]) {
      await same(`tile [${reps}] ${dtype}`, () => tf.tile(make([2, 3, 5]), reps));
    }
    const indices = () => tf.tensor2d([2, 0, 1, 1], [2, 2], "int32");
    for (const axis of [0, 1, 2, -2]) {
      await same(`gather along ${axis} ${dtype}`, () => tf.gather(make([3, 4, 70]), indices(), axis));
    }
    await same(`gather in batches ${dtype}`, () => tf.gather(make([2, 3, 5]), indices(), 1, 1));
  }
  await tf.setBackend("wasm");
  for (const index of [-1, 3]) {
    assert.throws(
      () => tf.tidy(() => tf.gather(tensor([3, 2]), tf.tensor1d([0, index], "int32"))),
      new RegExp(`index value ${index} is not in \\[0, 2\\]`),
    );
  }
});

Deno.test("wasm sums by segment, as the gradient of an embedding does", async () => {
  const indices = [3, 0, 3, 1, 3, 0];
  for (const axis of [0, 1]) {
    await check(`gather along ${axis}`, {
      shapes: [[5, 4, 3]],
      op: (x) => tf.gather(x!, tf.tensor2d(indices, [2, 3], "int32"), axis),
    });
  }
  await same(
    "unsortedSegmentSum leaves out what is of no segment",
    () => tf.unsortedSegmentSum(tensor([6, 3]), tf.tensor1d([2, -1, 0, 2, 4, 1], "int32"), 4),
  );
});

Deno.test("wasm multiplies matrices, transposed or not", async () => {
  for (const [m, k, n] of [[130, 5, 9], [5, 1100, 11], [3, 4, 517], [129, 557, 33]] as const) {
    for (const [a, b] of [[false, false], [true, false], [false, true], [true, true]]) {
      await same(
        `matMul ${m}x${k}x${n}${a ? ", a transposed" : ""}${b ? ", b transposed" : ""}`,
        () =>
          tf.matMul(
            tensor(a ? [k, m] : [m, k]) as tf.Tensor2D,
            tensor(b ? [n, k] : [k, n], 1) as tf.Tensor2D,
            a,
            b,
          ),
      );
    }
  }
  const sizes = [[3, 5, 7], [40, 3, 2], [2, 3, 40], [1, 6, 1]];
  for (const [m, k, n] of sizes as [number, number, number][]) {
    for (const [a, b] of [[false, false], [true, false], [false, true], [true, true]]) {
      await check(`matMul ${m}x${k}x${n}${a ? ", a transposed" : ""}${b ? ", b transposed" : ""}`, {
        shapes: [a ? [k, m] : [m, k], b ? [n, k] : [k, n]],
        op: (x, y) => tf.matMul(x as tf.Tensor2D, y as tf.Tensor2D, a, b),
      });
    }
  }
  // None that broadcast both ways: the backend "cpu" pairs those wrongly.
  const stacks = [
    [[3, 2, 4], [3, 5, 4]],
    [[1, 2, 4], [3, 5, 4]],
    [[2, 4], [3, 5, 4]],
  ];
  for (const shapes of stacks) {
    await same(
      `matMul of stacks ${JSON.stringify(shapes)}`,
      () => tf.matMul(tensor(shapes[0]!), tensor(shapes[1]!, 1), false, true),
    );
  }
  await check("matMul of stacks", {
    shapes: stacks[0]!,
    op: (x, y) => tf.matMul(x!, y!, false, true),
  });
  for (const activation of ["linear", "relu", "relu6", "elu", "sigmoid", "leakyrelu", "prelu"] as const) {
    await same(`fused matMul, ${activation}`, () =>
      tf.fused.matMul({
        a: tensor([3, 4]),
        b: tensor([4, 5], 1),
        bias: tensor([5], 2),
        activation: activation as "relu",
        leakyreluAlpha: 0.3,
        ...(activation === "prelu" ? { preluActivationWeights: tensor([5], 3) } : {}),
      }));
  }
});

Deno.test("wasm sums and averages over any axes", async () => {
  for (const axes of [[0], [0, 1], [0, 1, 2], [1], [0, 2], [2, 3], [0, 1, 2, 3], []]) {
    for (const keep of [false, true]) {
      const x = () => tf.add(tensor([6, 5, 7, 9]), 1);
      await same(`sum over [${axes}], keepDims ${keep}`, () => tf.sum(x(), axes, keep));
      await same(`mean over [${axes}], keepDims ${keep}`, () => tf.mean(x(), axes, keep));
    }
  }
  await check("sum over [1, 0]", { shapes: [[9, 5, 30]], op: (x) => tf.sum(tf.square(x!), [1, 0]) });
});

Deno.test("wasm takes parts of tensors of every dtype", async () => {
  const kinds: [string, () => tf.Tensor][] = [
    ["float32", () => tensor([4, 5, 3, 20])],
    ["int32", () => tf.range(0, 1200, 1, "int32").reshape([4, 5, 3, 20])],
    ["bool", () => tf.greater(tensor([4, 5, 3, 20]), 0)],
  ];
  for (const [dtype, x] of kinds) {
    await same(`slice ${dtype}`, () => tf.slice(x(), [1, 0, 1, 2], [2, 5, 2, 17]));
    await same(`slice rows ${dtype}`, () => tf.slice(x(), 2, 1));
    await same(`slice nothing ${dtype}`, () => tf.slice(x(), [1, 2, 0, 0], [2, 0, 3, 20]));
    if (dtype === "float32") {
      await same("stridedSlice", () => tf.stridedSlice(x(), [0, 4, 0, 19], [4, 0, 3, 1], [2, -2, 1, -3]));
    }
    await same(`reverse ${dtype}`, () => tf.reverse(x(), [1, -1]));
    for (const axis of [0, 2, -1]) await same(`unstack ${axis} ${dtype}`, () => tf.unstack(x(), axis));
    await same(`split ${dtype}`, () => tf.split(x(), [1, 3, 1], 1));
  }
  await tf.setBackend("wasm");
  const odd = tf.tidy(() => tf.stridedSlice(tf.tensor1d([7, 8, 9, 10], "int32"), [1], [4], [2]).dataSync());
  assert.deepEqual(odd, Int32Array.of(8, 10));
});

Deno.test("wasm knows slopes of every shape, and what is true", async () => {
  for (const shape of [[4], [3, 1, 1], [1, 2, 1], [2, 3, 2, 4]]) {
    await check(`prelu with slopes [${shape}]`, {
      shapes: [[2, 3, 2, 4], shape],
      op: (x, alpha) => tf.prelu(x!, alpha!),
    });
  }
  await same("cast to bool", () => tf.cast(tf.tensor1d([0, 0.5, -3.7, 256, -0]), "bool"));
  await same("cast int32 to bool", () => tf.cast(tf.tensor1d([0, 256, -1], "int32"), "bool"));
});

Deno.test("wasm clones share their values, and outlive each other", async () => {
  await tf.setBackend("wasm");
  const before = tf.memory().numTensors;
  const x = tensor([10]);
  const [y, z] = [tf.clone(x), tf.cast(x, "float32")];
  x.dispose();
  assert.deepEqual(y.dataSync(), values(10, 0));
  y.dispose();
  assert.deepEqual(z.dataSync(), values(10, 0));
  z.dispose();
  assert.equal(tf.memory().numTensors, before);
});

/** The last one: it leaves the backend without memory. */
export function testFullMemory(backend: WasmBackend): void {
  Deno.test("wasm stops where its memory is full", async () => {
    await tf.setBackend("wasm");
    const held: tf.TensorInfo[] = [];
    assert.throws(
      () => {
        for (let i = 0; i < 3; i++) held.push(backend.makeOutput([4e8], "float32"));
      },
      /^RangeError: Cannot allocate 1600000000 bytes on engine "wasm": its memory, 4 GiB at most, is full/,
    );
    assert.equal(held.length, 2);
    for (const { dataId } of held) backend.disposeData(dataId);
  });
}
