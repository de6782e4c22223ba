/** The engines that specs run on, started as a worker starts them. @module */
import { fileURLToPath } from "node:url";
import { tf } from "../../deps.ts";
import type { NodeBackend } from "../../runtime/tensorflow/binding/backend.ts";
import { registerLayers } from "../../stages/layers/register.ts";
import type { TestEnvironment } from "./bundle.ts";

/** What specs can run on: Stagger's engines, and tfjs-backend-wasm as it is published. */
export const SUBJECTS = ["tensorflow", "wasm", "stock-wasm"] as const;

/** Name of one. */
export type Subject = typeof SUBJECTS[number];

/** A started engine. */
export interface StartedSubject {
  readonly description: string;
  /** There for `tensorflow`. */
  readonly backend?: NodeBackend;
}

/** The environment of its specs. Its name is the one that tfjs-node's and tfjs-backend-wasm's own runs use. */
export function environmentOf(subject: Subject): TestEnvironment {
  const backendName = subject === "tensorflow" ? "tensorflow" : "wasm";
  return { name: `test-${backendName}`, backendName, flags: {}, isDataSync: true };
}

/** Starts an engine, with the gradients that Stagger's layers train by. */
export async function startSubject(subject: Subject): Promise<StartedSubject> {
  switch (subject) {
    case "tensorflow":
      return await startTensorflow();
    case "wasm": {
      const { startBackend } = await import("../../runtime/wasm/start_backend.ts");
      const { version, simd, backend } = await startBackend();
      registerLayers();
      await keepBackend("wasm", backend);
      return { description: `wasm ${version}${simd ? "" : " without SIMD"}` };
    }
    case "stock-wasm":
      return await startStockWasm();
  }
}

async function startTensorflow(): Promise<StartedSubject> {
  const { findTensorflow } = await import("../../runtime/tensorflow/library/find.ts");
  const { Context } = await import("../../runtime/tensorflow/binding/context.ts");
  const { startBackend } = await import("../../runtime/tensorflow/start_backend.ts");
  const found = findTensorflow();
  if (found === undefined) throw new Error('Cannot find libtensorflow: run "deno task setup"');
  const { cc, framework, cudaLibraries } = found;
  const context = new Context({ libraries: { cc, framework, cudaLibraries }, device: "cpu" });
  const backend = await startBackend(context);
  const { setLowerings } = await import("../../runtime/tensorflow/kernels/lowering.ts");
  setLowerings(true);
  registerLayers();
  return { description: `tensorflow ${context.version}`, backend };
}

async function startStockWasm(): Promise<StartedSubject> {
  const { setWasmPaths, version_wasm: version } = await import("npm:@tensorflow/tfjs-backend-wasm@4.22.0");
  const binary = import.meta.resolve(
    "npm:@tensorflow/tfjs-backend-wasm@4.22.0/wasm-out/tfjs-backend-wasm-simd.wasm",
  );
  setWasmPaths(fileURLToPath(new URL(".", binary)));
  tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", false);
  if (!await tf.setBackend("wasm")) throw new Error("Cannot start tfjs-backend-wasm");
  await keepBackend("wasm", tf.backend());
  return { description: `tfjs-backend-wasm ${version}` };
}

/**
 * Keeps a backend through tfjs-core's specs, which dispose of it before and after each suite: a worker has one
 * instance for all its life, and Stagger's kernels belong to it.
 */
async function keepBackend(name: string, backend: tf.KernelBackend): Promise<void> {
  backend.dispose = () => {};
  tf.removeBackend(name);
  tf.registerBackend(name, () => backend);
  await tf.setBackend(name);
}
