/** Tests of the binding: every dtype in and out, scalars, empty and large tensors, lists. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { close } from "./compare.ts";
import { engine, numbers, onCpu, test, testTidy } from "./engine.ts";
import { run } from "./ops.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Values and dtype after a round through TensorFlow's memory: a fresh tensor's stay in JavaScript's. */
function through(t: tf.Tensor): { dtype: string; shape: number[]; values: unknown[] } {
  const out = tf.reshape(t, t.shape);
  engine.backend.getInputTensorIds([t]); // moves the values
  return { dtype: out.dtype, shape: out.shape, values: [...out.dataSync()] };
}

testTidy("float32 passes through bit for bit", () => {
  const values = [0, -0, 1.5, Math.fround(1 / 3), 3.4e38, 1e-45, Infinity, -Infinity, NaN];
  const { dtype, values: out } = through(tf.tensor1d(values));
  assert.equal(dtype, "float32");
  assert.deepEqual(out, [...Float32Array.from(values)]);
});

testTidy("int32 passes through, its extremes too", () => {
  const values = [0, -1, 2147483647, -2147483648, 16777217];
  assert.deepEqual(through(tf.tensor1d(values, "int32")), { dtype: "int32", shape: [5], values });
  assert.deepEqual([...tf.add(tf.tensor1d([16777217], "int32"), tf.scalar(1, "int32")).dataSync()], [
    16777218,
  ]);
});

testTidy("bool passes through as zeros and ones", () => {
  const t = tf.tensor2d([[true, false], [false, true]], [2, 2], "bool");
  assert.deepEqual(through(t), { dtype: "bool", shape: [2, 2], values: [1, 0, 0, 1] });
  const not = tf.logicalNot(t);
  assert.equal(not.dtype, "bool");
  assert.deepEqual([...not.dataSync()], [0, 1, 1, 0]);
  assert.deepEqual([...tf.cast(t, "float32").dataSync()], [1, 0, 0, 1]);
});

testTidy("complex64 passes through, its parts interleaved", () => {
  const z = tf.complex([1, -2], [3, 0.5]);
  assert.deepEqual(through(z), { dtype: "complex64", shape: [2], values: [1, 3, -2, 0.5] });
  assert.deepEqual([...tf.real(z).dataSync()], [1, -2]);
  assert.deepEqual([...tf.imag(z).dataSync()], [3, 0.5]);
  assert.deepEqual([...tf.abs(tf.complex([3], [4])).dataSync()], [5]);
  // (1 + 3i)^2 and (-2 + 0.5i)^2
  assert.deepEqual([...tf.mul(z, z).dataSync()], [-8, 6, 3.75, -2]);
  const created = run("Identity", [{ name: "T", type: 4, value: 8 }], [[
    8,
    [2],
    Float32Array.of(1, 2, 3, 4),
  ]]);
  assert.deepEqual(created, [{ dtype: 8, shape: [2], values: [1, 2, 3, 4] }]);
});

testTidy("fft and its inverses agree with the definition", () => {
  const [re, im] = [[...numbers(6, 2)], [...numbers(6, 3)]];
  const expected = re.flatMap((_, k) => {
    const sum = [0, 0];
    re.forEach((a, n) => {
      const [c, s] = [Math.cos(2 * Math.PI * k * n / 6), -Math.sin(2 * Math.PI * k * n / 6)];
      sum[0]! += a * c - im[n]! * s;
      sum[1]! += a * s + im[n]! * c;
    });
    return sum;
  });
  const z = tf.complex(re, im);
  const spectrum = tf.fft(z);
  close(spectrum.dataSync(), expected, 1e-5);
  close(tf.ifft(spectrum).dataSync(), z.dataSync(), 1e-6);
  close(tf.irfft(tf.rfft(tf.tensor1d(re))).dataSync(), re, 1e-6);
});

testTidy("strings pass through: empty, of several bytes a character, short, long", () => {
  const texts = [
    "",
    "a",
    "日本語 🎉",
    "x".repeat(22),
    "y".repeat(23),
    "z".repeat(24),
    "long ".repeat(20_000),
  ];
  assert.deepEqual(through(tf.tensor1d(texts)), { dtype: "string", shape: [7], values: texts });
  const twice = tf.concat([tf.tensor1d(texts), tf.tensor1d(texts)]);
  assert.deepEqual([...twice.dataSync() as unknown as string[]], [...texts, ...texts]);
  assert.deepEqual(tf.reshape(tf.tensor2d([["a", "b"]]), [2, 1]).arraySync() as unknown, [["a"], ["b"]]);
});

testTidy("strings that are no text pass through as bytes", () => {
  const raw = Uint8Array.from({ length: 64 }, (_, i) => (i * 37) % 256);
  const [out] = run("Identity", [{ name: "T", type: 4, value: 7 }], [[7, [2], [raw, new Uint8Array(0)]]]);
  assert.deepEqual(out!.values, [raw, new Uint8Array(0)]);
});

test("long strings are freed with their tensors", () => {
  const { binding, context } = engine;
  const texts = [bytes("x".repeat(1 << 20)), bytes("short")];
  const make = () => {
    for (let i = 0; i < 40; i++) binding.deleteTensor(binding.createTensor([2], 7, texts));
    context.c.malloc_trim(0n);
    return Deno.memoryUsage().rss;
  };
  const before = make();
  const grown = (make() - before) / 2 ** 20;
  assert.ok(grown < 20, `grew by ${grown} MB over 40 tensors of 1 MB`);
});

testTidy("64-bit integers come as numbers, bytes as they are", () => {
  const { binding } = engine;
  const halves = Int32Array.of(7, 0, -3, -1); // pairs, the low half first
  const [long] = run("Identity", [{ name: "T", type: 4, value: binding.TF_INT64 }], [[9, [2], halves]]);
  assert.deepEqual(long, { dtype: binding.TF_INT64, shape: [2], values: [7, -3] });
  const [byte] = run("Identity", [{ name: "T", type: 4, value: binding.TF_UINT8 }], [
    [binding.TF_UINT8, [3], Uint8Array.of(0, 128, 255)],
  ]);
  assert.deepEqual(byte!.values, [0, 128, 255]);
});

testTidy("scalars keep their rank", () => {
  for (const value of [3.5, 7, true, "text"]) {
    const dtype = typeof value === "string" ? "string" : typeof value === "boolean" ? "bool" : "float32";
    assert.deepEqual(through(tf.scalar(value)), { dtype, shape: [], values: [value === true ? 1 : value] });
  }
});

testTidy("empty tensors keep their shape", () => {
  for (const dtype of ["float32", "int32", "bool", "string"] as const) {
    assert.deepEqual(through(tf.tensor([], [0, 3], dtype)), { dtype, shape: [0, 3], values: [] });
  }
  assert.deepEqual(tf.sum(tf.tensor2d([], [0, 3]), 0).arraySync(), [0, 0, 0]);
  assert.deepEqual(tf.concat([tf.zeros([0, 2]), tf.ones([1, 2])]).arraySync(), [[1, 1]]);
  const values = tf.tensor1d([], "string");
  assert.deepEqual([...tf.concat([values, tf.tensor1d(["q"])]).dataSync() as unknown as string[]], ["q"]);
});

testTidy("a large tensor arrives whole", () => {
  const values = numbers(3 << 20);
  const t = tf.tensor1d(values);
  assert.deepEqual(tf.neg(tf.neg(t)).dataSync(), values);
});

testTidy("values in another array type than the dtype's are converted", () => {
  const { binding } = engine;
  const identity = (dtype: number) => [{ name: "T", type: binding.TF_ATTR_TYPE, value: dtype }];
  const of = (dtype: number, values: Int32Array | Float32Array) =>
    run("Identity", identity(dtype), [[dtype, [2], values]])[0]!.values;
  assert.deepEqual(of(binding.TF_FLOAT, Int32Array.of(2, -3)), [2, -3]);
  assert.deepEqual(of(binding.TF_INT32, Float32Array.of(2, -3)), [2, -3]);
  assert.deepEqual(of(binding.TF_BOOL, Int32Array.of(1, 0)), [1, 0]);
  assert.throws(() => binding.createTensor([3], binding.TF_FLOAT, Float32Array.of(1)), {
    name: "RangeError",
    message: "Cannot fill a tensor of 12 bytes [3] with 4 bytes",
  });
});

testTidy("ops take lists and give lists, long ones too", () => {
  const [a, b] = [tf.tensor2d([[1, 2]]), tf.tensor2d([[3, 4], [5, 6]])];
  assert.deepEqual(tf.concat([a, b, a], 0).arraySync(), [[1, 2], [3, 4], [5, 6], [1, 2]]);
  assert.deepEqual(tf.addN([a, a, a]).arraySync(), [[3, 6]]);
  assert.deepEqual(tf.split(tf.range(0, 7), [1, 4, 2]).map((t) => t.arraySync()), [[0], [1, 2, 3, 4], [
    5,
    6,
  ]]);
  assert.deepEqual(tf.unstack(b, 1).map((t) => t.arraySync()), [[3, 5], [4, 6]]);
  assert.deepEqual(tf.stack([tf.scalar(1), tf.scalar(2)]).arraySync(), [1, 2]);
  const many = tf.unstack(tf.range(0, 300)); // more outputs than the room that is kept for them
  assert.deepEqual([many.length, many[0]!.arraySync(), many[299]!.arraySync()], [300, 0, 299]);
  assert.deepEqual(tf.addN(many).arraySync(), 44850);
});

testTidy("ops give several outputs of different dtypes", () => {
  const { values, indices } = tf.topk(tf.tensor1d([1, 5, 3]), 2);
  assert.deepEqual([values.dtype, indices.dtype], ["float32", "int32"]);
  assert.deepEqual([values.arraySync(), indices.arraySync()], [[5, 3], [1, 2]]);
  const unique = tf.unique(tf.tensor1d([4, 9, 4]));
  assert.deepEqual([unique.values.arraySync(), unique.indices.arraySync()], [[4, 9], [0, 1, 0]]);
});

testTidy("where picks by condition and finds coordinates", async () => {
  const condition = tf.tensor1d([true, false, true], "bool");
  const picked = tf.where(condition, tf.tensor1d([1, 2, 3]), tf.tensor1d([4, 5, 6]));
  assert.deepEqual(picked.arraySync(), [1, 5, 3]);
  const found = await tf.whereAsync(condition);
  assert.deepEqual(found.arraySync(), [[0], [2]]);
  found.dispose();
});

testTidy("the backend answers as tfjs's own does for every dtype", async () => {
  const compute = () =>
    tf.tidy(() => {
      const [x, i] = [tf.tensor2d(numbers(12), [3, 4]), tf.tensor1d([3, 1, 2], "int32")];
      const b = tf.greater(x, 0);
      return [
        tf.cumsum(x, 1),
        tf.oneHot(i, 4),
        tf.any(b, 0),
        tf.argMax(x, 1),
        tf.mod(i, tf.scalar(2, "int32")),
        tf.cast(x, "int32"),
        tf.reverse(x, 1),
        tf.floorDiv(i, tf.scalar(2, "int32")),
        tf.complex(x, x),
        tf.pad(b, [[1, 0], [0, 1]]),
      ].map((t) => ({ dtype: t.dtype, shape: t.shape, values: [...t.dataSync()] }));
    });
  const ours = compute();
  const theirs = await onCpu(compute);
  for (const [i, { dtype, shape, values }] of theirs.entries()) {
    assert.deepEqual([ours[i]!.dtype, ours[i]!.shape], [dtype, shape], `output ${i}`);
    close(ours[i]!.values, values, 1e-6);
  }
});
