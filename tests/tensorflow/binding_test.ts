/** Tests of the binding: attributes, errors, what is freed when, and what a capture has no values for. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { type OpAttribute, typeAttr } from "../../runtime/tensorflow/binding/attributes.ts";
import { CapturedFunction } from "../../runtime/tensorflow/capture/captured_function.ts";
import { TensorflowError } from "../../runtime/tensorflow/binding/context.ts";
import { GraphRecorder } from "../../runtime/tensorflow/binding/graph_recorder.ts";
import { CaptureError, type GraphTensor } from "../../runtime/tensorflow/binding/graph_tensor.ts";
import { readHandle } from "../../runtime/tensorflow/binding/tensor.ts";
import { assignAttributes, Variable } from "../../runtime/tensorflow/binding/variable.ts";
import { engine, numbers, testTidy } from "./engine.ts";
import { captured, decode, type Given, type Made, run } from "./ops.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Ops that need an attribute of each kind, with what they answer: eagerly and as a node of a graph. */
const ATTRIBUTES: [
  kind: string,
  op: string,
  attributes: OpAttribute[],
  inputs: Given[],
  expected: Made[],
][] = [
  ["string", "StringJoin", [{ name: "N", type: 1, value: 2 }, { name: "separator", type: 0, value: "→ä" }], [
    [7, [], [bytes("l")]],
    [7, [], [bytes("r")]],
  ], [{ shape: [], dtype: 7, values: ["l→är"] }]],
  [
    "integer",
    "Unpack",
    [
      { name: "T", type: 4, value: 1 },
      { name: "num", type: 1, value: 2 },
      { name: "axis", type: 1, value: -1 },
    ],
    [[1, [1, 2], Float32Array.of(8, 9)]],
    [8, 9].map((value) => ({ shape: [1], dtype: 1, values: [value] })),
  ],
  [
    "integer list",
    "Squeeze",
    [{ name: "T", type: 4, value: 1 }, {
      name: "squeeze_dims",
      type: 1,
      value: [0, 2],
    }],
    [[1, [1, 2, 1, 1], Float32Array.of(1, 2)]],
    [{ shape: [2, 1], dtype: 1, values: [1, 2] }],
  ],
  [
    "empty list",
    "Squeeze",
    [{ name: "T", type: 4, value: 1 }, { name: "squeeze_dims", type: 1, value: [] }],
    [
      [1, [1, 2, 1], Float32Array.of(1, 2)],
    ],
    [{ shape: [2], dtype: 1, values: [1, 2] }],
  ],
  ["float", "LeakyRelu", [{ name: "T", type: 4, value: 1 }, { name: "alpha", type: 2, value: 0.25 }], [
    [1, [2], Float32Array.of(-2, 2)],
  ], [{ shape: [2], dtype: 1, values: [-0.5, 2] }]],
  [
    "float list",
    "Bucketize",
    [{ name: "T", type: 4, value: 1 }, {
      name: "boundaries",
      type: 2,
      value: [0.5, 1.5],
    }],
    [[1, [3], Float32Array.of(0, 1, 2)]],
    [{ shape: [3], dtype: 3, values: [0, 1, 2] }],
  ],
  [
    "bool",
    "Sum",
    [
      { name: "T", type: 4, value: 1 },
      { name: "Tidx", type: 4, value: 3 },
      { name: "keep_dims", type: 3, value: true },
    ],
    [[1, [2, 2], Float32Array.of(1, 2, 3, 4)], [3, [1], Int32Array.of(1)]],
    [
      { shape: [2, 1], dtype: 1, values: [3, 7] },
    ],
  ],
  ["type", "Cast", [{ name: "SrcT", type: 4, value: 1 }, { name: "DstT", type: 4, value: 3 }], [
    [1, [2], Float32Array.of(1.9, -1.9)],
  ], [{ shape: [2], dtype: 3, values: [1, -1] }]],
  ["type list", "IdentityN", [{ name: "T", type: 4, value: [1, 3] }], [
    [1, [1], Float32Array.of(4)],
    [3, [2], Int32Array.of(5, 6)],
  ], [{ shape: [1], dtype: 1, values: [4] }, { shape: [2], dtype: 3, values: [5, 6] }]],
  ["shape", "EnsureShape", [{ name: "T", type: 4, value: 1 }, { name: "shape", type: 5, value: [2, -1] }], [
    [1, [2, 1], Float32Array.of(1, 2)],
  ], [{ shape: [2, 1], dtype: 1, values: [1, 2] }]],
  [
    "absent",
    "LeakyRelu",
    [
      { name: "T", type: 4, value: 1 },
      { name: "alpha", type: 2, value: null },
    ],
    [[1, [1], Float32Array.of(-1)]],
    [{ shape: [1], dtype: 1, values: [Math.fround(-0.2)] }],
  ],
];

for (const [kind, op, attributes, inputs, expected] of ATTRIBUTES) {
  testTidy(`an attribute of kind ${kind} reaches op ${op}`, () => {
    const eager = run(op, attributes, inputs, expected.length);
    assert.deepEqual(eager.map((out) => ({ ...out, values: decode(out.values) })), expected);
    assert.deepEqual(captured(op, attributes, inputs, expected.length), expected);
  });
}

testTidy("an attribute of an unknown kind is refused", () => {
  assert.throws(() => run("LeakyRelu", [{ name: "alpha", type: 9, value: 1 }], []), {
    name: "TypeError",
    message: 'Cannot set attribute "alpha": unknown kind 9',
  });
});

testTidy("errors of TensorFlow reach the caller with the op's name, and the engine goes on", () => {
  const { binding } = engine;
  const throws = (op: string, message: RegExp, attributes: OpAttribute[] = []) => {
    assert.throws(() => run(op, attributes, [[1, [2, 3], numbers(6)], [1, [2, 3], numbers(6)]]), (error) => {
      assert.ok(error instanceof TensorflowError, `${error}`);
      assert.equal(error.name, "TensorflowError");
      assert.match(error.message, message);
      return true;
    });
    assert.deepEqual(tf.add(tf.scalar(1), tf.scalar(2)).arraySync(), 3);
  };
  throws("NoSuchOp", /^Make op NoSuchOp: .*NoSuchOp/);
  throws("MatMul", /^Run op MatMul: .*(incompatible|Matrix size)/, [{ name: "T", type: 4, value: 1 }]);
  throws("Relu", /^Run op Relu: /, [{ name: "T", type: 4, value: 1 }]); // one input too many
  throws("Reshape", /^Run op Reshape: .*Tshape/, [{ name: "T", type: 4, value: 1 }]); // a shape of floats
  const recorder = new GraphRecorder(engine.context, "stage0_F");
  const a = binding.createTensor([2, 3], 1, numbers(6));
  const matmul = () => binding.executeOp("MatMul", [{ name: "T", type: 4, value: 1 }], [a, a], 1);
  assert.throws(() => binding.record(recorder, matmul), {
    name: "TensorflowError",
    message: /^Capture op MatMul in stage0_F: /,
  });
  assert.equal(binding.recorder, undefined);
  binding.deleteTensor(a);
  recorder.dispose();
  binding.endCapture();
});

testTidy("gather refuses an index out of range, and takes legal ones", () => {
  const table = tf.tensor2d([[1, 2], [3, 4], [5, 6]]);
  const at = (...indices: number[]) => tf.gather(table, tf.tensor1d(indices, "int32"));
  assert.deepEqual(at(2, 0).arraySync(), [[5, 6], [1, 2]]);
  const outside = (index: number) => ({
    name: "RangeError",
    message: `GatherV2: the index value ${index} is not in [0, 2]`,
  });
  assert.throws(() => at(0, 3), outside(3));
  assert.throws(() => at(-1), outside(-1));
  const rows = tf.gather(tf.tensor2d([[1, 2], [3, 4]]), tf.tensor2d([[1], [0]], [2, 1], "int32"), 1, 1);
  assert.deepEqual(rows.arraySync(), [[2], [3]]);
  assert.deepEqual(tf.gather(tf.tensor1d([true, false], "bool"), tf.tensor1d([1], "int32")).dtype, "bool");
});

testTidy(
  "integers are rounded to themselves, and what is no integer is cut off where an op takes one",
  () => {
    assert.deepEqual(tf.round(tf.tensor1d([-12345678, 7], "int32")).arraySync(), [-12345678, 7]);
    assert.deepEqual(tf.round([-1.5, 2.4]).arraySync(), [-2, 2]);
    assert.deepEqual(tf.multinomial([-100, 100], 3, 3.14).arraySync(), [1, 1, 1]);
  },
);

testTidy("gather records any dtype", () => {
  const { binding, context } = engine;
  const recorder = new GraphRecorder(context, "gather");
  const tables = [tf.tensor1d([5, 6, 7], "int32"), tf.tensor1d([true, false], "bool"), tf.tensor1d([1, 2])];
  const made = binding.record(recorder, () => tables.map((t) => tf.gather(t, tf.tensor1d([1, 0], "int32"))));
  assert.deepEqual(made.map(({ dtype }) => dtype), ["int32", "bool", "float32"]);
  tf.dispose(made);
  recorder.dispose();
  binding.endCapture();
});

testTidy("writes and reads of a variable run in the order in which they were recorded", () => {
  const { context, binding } = engine;
  const variable = new Variable(context, "v", { shape: [2], dtype: "float32" });
  variable.assign(Float32Array.of(1, 2));
  const recorder = new GraphRecorder(context, "order");
  const constant = (...values: number[]) => {
    const id = binding.createTensor([values.length], 1, Float32Array.from(values));
    const tensor = binding.record(recorder, () => binding.resolve(id));
    binding.deleteTensor(id);
    return tensor;
  };
  const write = (value: GraphTensor) =>
    recorder.write("AssignVariableOp", assignAttributes(variable), variable, [value]);
  const first = recorder.read(variable);
  // The first value takes longer to compute than the second.
  let slow = constant(3, 4);
  for (let i = 0; i < 5; i++) slow = recorder.op("Neg", [typeAttr("T", 1)], [slow], 1)[0]!;
  write(slow);
  const between = recorder.read(variable);
  assert.notEqual(between, first);
  write(constant(5, 6));
  const last = recorder.read(variable);
  assert.equal(recorder.read(variable), last);
  const f = new CapturedFunction(recorder, [first, between, last]);
  const [once, twice] = [1, 2].map(() => {
    const handles = f.call(BigUint64Array.of(variable.handle));
    const values = Array.from(handles, (handle) => [...readHandle(context, handle) as Float32Array]);
    for (const handle of handles) context.tf.TFE_DeleteTensorHandle(handle);
    return { handles, values };
  });
  assert.deepEqual(once!.values, [[1, 2], [-3, -4], [5, 6]]);
  assert.deepEqual(twice!.values, [[5, 6], [-3, -4], [5, 6]]);
  assert.notEqual(once!.handles, twice!.handles);
  f.dispose();
  recorder.dispose();
  binding.endCapture();
  variable.dispose();
});

testTidy("a tensor is disposed once; what was disposed is named", () => {
  const { binding } = engine;
  const t = tf.relu(tf.tensor1d([1, -1]));
  const copy = tf.clone(t);
  const before = binding.getNumOfTensors();
  t.dispose();
  t.dispose();
  assert.deepEqual(copy.arraySync(), [1, 0]); // the clone still stands on the same memory
  copy.dispose();
  assert.equal(binding.getNumOfTensors(), before - 1);
  const id = binding.createTensor([], 1, Float32Array.of(1));
  binding.deleteTensor(id);
  const message = `Cannot find tensor ${id}: it was disposed`;
  assert.throws(() => binding.deleteTensor(id), { message });
  assert.throws(() => binding.tensorDataSync(id), { message });
  assert.throws(() => binding.executeOp("Relu", [], [id], 1), { message });
});

testTidy("64-bit integers are freed with the one op that they are made for, also if it fails", () => {
  const { binding } = engine;
  const before = binding.getNumOfTensors();
  const long = () => binding.createTensor([1], binding.TF_INT64, Int32Array.of(5, 0));
  const [out] = binding.executeOp("Identity", [{ name: "T", type: 4, value: binding.TF_INT64 }], [long()], 1);
  binding.deleteTensor(out!.id);
  assert.throws(() => binding.executeOp("Reshape", [], [long(), long()], 9), TensorflowError);
  assert.equal(binding.getNumOfTensors(), before);
});

testTidy("a tensor of a capture has no values, not even after it", () => {
  const { binding, context } = engine;
  const recorder = new GraphRecorder(context, "beyond");
  const made = binding.record(recorder, () => {
    const t = tf.relu(tf.tensor1d([1, 2]));
    assert.throws(() => t.dataSync(), { name: "CaptureError", message: "reads values while it computes" });
    return t;
  });
  assert.throws(() => made.dataSync(), CaptureError);
  assert.throws(() => tf.neg(made), {
    name: "CaptureError",
    message: "keeps a tensor of the capture beyond it (op Neg)",
  });
  made.dispose();
  recorder.dispose();
  binding.endCapture();
});
