/** The engine "tensorflow" for tests, started once per file: each test file is an isolate of its own. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import type { NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import { startBackend } from "../../runtime/tensorflow/start_backend.ts";
import type { Binding } from "../../runtime/tensorflow/binding/binding.ts";
import { Context } from "../../runtime/tensorflow/binding/context.ts";
import { HandleTensors } from "../../runtime/tensorflow/binding/engine_tensors.ts";
import { EagerTensors } from "../../runtime/tensorflow/binding/eager_tensors.ts";
import { findTensorflow, type FoundTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { setLowerings } from "../../runtime/tensorflow/kernels/lowering.ts";
import { registerLayers } from "../../stages/layers/register.ts";

/** libtensorflow, if there is one: tests that need it are ignored otherwise. */
export const found: FoundTensorflow | undefined = findTensorflow();

/** A started engine. */
export interface TestEngine {
  readonly context: Context;
  readonly backend: NodeBackend;
  readonly binding: Binding;
  readonly tensors: HandleTensors;
  readonly eagerTensors: EagerTensors;
}

async function start({ cc, framework, cudaLibraries }: FoundTensorflow): Promise<TestEngine> {
  const context = new Context({ libraries: { cc, framework, cudaLibraries }, device: "cpu" });
  const backend = await startBackend(context);
  setLowerings(true);
  registerLayers();
  const tensors = new HandleTensors(context);
  return {
    context,
    backend,
    binding: backend.binding,
    tensors,
    eagerTensors: new EagerTensors(backend, tensors),
  };
}

/** The engine of this file. Only tests that run may touch it. */
export const engine: TestEngine = found ? await start(found) : undefined as unknown as TestEngine;

/** Declares a test that needs the engine. */
export function test(name: string, fn: () => void | Promise<void>): void {
  const ignore = found === undefined;
  Deno.test({ name: ignore ? `${name} (no libtensorflow: "deno task setup")` : name, ignore, fn });
}

/** As `test`, and no tensor may be left over. */
export function testTidy(name: string, fn: () => void | Promise<void>): void {
  test(name, async () => {
    const before = [tf.memory().numTensors, engine.binding.getNumOfTensors()];
    tf.engine().startScope();
    try {
      await fn();
    } finally {
      tf.engine().endScope();
    }
    assert.deepEqual([tf.memory().numTensors, engine.binding.getNumOfTensors()], before, "tensors left over");
  });
}

/** Runs `body` on TensorFlow.js's own backend `cpu`; its tensors are the caller's to read before it ends. */
export async function onCpu<T>(body: () => T | Promise<T>): Promise<T> {
  await tf.setBackend("cpu");
  try {
    return await body();
  } finally {
    await tf.setBackend("tensorflow");
  }
}

/** Numbers in [-1, 1) from a hash of seed and index. */
export function numbers(count: number, seed = 1): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: count }, (_, i) => {
    let x = (i + Math.imul(seed, 0x9e3779b9)) | 0;
    x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
    x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
    return ((x ^ (x >>> 16)) >>> 0) / 2 ** 31 - 1;
  });
}

/** A tensor of such numbers. */
export function random(shape: number[], seed = 1): tf.Tensor {
  return tf.tensor(numbers(shape.reduce((a, b) => a * b, 1), seed), shape);
}
