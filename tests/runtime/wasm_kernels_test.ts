import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { runKernel, silenceBanner } from "../../stages/tfjs.ts";
import { check, same, tensor, values } from "./wasm_reference.ts";

silenceBanner();
const { backend } = await startBackend();

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
  const sizes = [[3, 5, 7], [40, 3, 2], [2, 3, 40], [1, 6, 1]];
  for (const [m, k, n] of sizes as [number, number, number][]) {
    for (const [a, b] of [[false, false], [true, false], [false, true], [true, true]]) {
      await check(`matMul ${m}x${k}x${n}${a ? ", a transposed" : ""}${b ? ", b transposed" : ""}`, {
        shapes: [a ? [k, m] : [m, k], b ? [n, k] : [k, n]],
        op: (x, y) => tf.matMul(x as tf.Tensor2D, y as tf.Tensor2D, a, b),
      });
    }
  }
  await check("matMul of stacks", {
    shapes: [[3, 2, 4], [3, 5, 4]],
    op: (x, y) => tf.matMul(x!, y!, false, true),
  });
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

// The last one: it leaves the backend without memory.
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
