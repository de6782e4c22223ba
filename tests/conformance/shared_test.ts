/** Specs run on Stagger's TensorFlow.js, not on one of their own; and captured calls are compared by value. */
import assert from "node:assert/strict";
import { differenceOf } from "../../conformance/capture/compare.ts";
import type { RecordedTensor } from "../../conformance/capture/recorder.ts";
import { checkShared } from "../../conformance/suite/run.ts";
import { tf } from "../../deps.ts";

Deno.test("specs with an engine, kernels or a Tensor class of their own are refused", () => {
  const environment = { name: "test-cpu", backendName: "cpu", flags: {}, isDataSync: true };
  const shared = {
    ENGINE: tf.engine(),
    env: tf.env,
    getGlobalTensorClass: () => tf.Tensor,
    getKernel: tf.getKernel,
    getGradient: tf.getGradient,
  };
  checkShared(shared, environment);
  assert.throws(
    () => checkShared({ ...shared, ENGINE: {}, getGlobalTensorClass: () => Object }, environment),
    /^Error: Specs do not share TensorFlow.js with the engine: they have their own engine, Tensor class$/,
  );
  assert.throws(() => checkShared({ ...shared, getKernel: () => ({}) }, environment), /their own kernels/);
});

Deno.test("outputs are the same by bits, close, or described", () => {
  const of = (...values: number[]): RecordedTensor[] => [
    { dtype: "float32", shape: [values.length], values: Float32Array.from(values) },
  ];
  assert.equal(differenceOf(of(1, NaN, -0), of(1, NaN, -0)), 0);
  const close = differenceOf(of(1000.001), of(1000)) as number;
  assert.ok(close > 0 && close < 1e-5);
  assert.ok(differenceOf(of(0), of(-0)) as number > 0);
  assert.equal(differenceOf(of(1, 2), of(1, 3)), "2 at 1 instead of 3");
  assert.equal(differenceOf(of(NaN), of(1)), "NaN at 0 instead of 1");
  assert.equal(differenceOf(of(Infinity), of(-Infinity)), "Infinity at 0 instead of -Infinity");
  assert.equal(differenceOf(of(1), of(1, 2)), "float32[1] instead of float32[2]");
  assert.equal(differenceOf([], of(1)), "0 outputs instead of 1");
  const words = (...texts: string[]): RecordedTensor[] => [
    { dtype: "string", shape: [1], values: texts.map((text) => new TextEncoder().encode(text)) },
  ];
  assert.equal(differenceOf(words("a"), words("a")), 0);
  assert.equal(differenceOf(words("b"), words("a")), "another string at 0");
});
