/** Starts the TensorFlow.js backend "wasm" with Stagger's kernels beside its own. @module */
import { fileURLToPath } from "node:url";
import { tf } from "../../deps.ts";
import { BACKEND, type WasmBackend } from "./backend.ts";
import { Heap } from "./heap.ts";
import { registerKernels } from "./kernels/register.ts";
import { Simd } from "./simd/simd.ts";

/** A started backend. */
export interface StartedBackend {
  readonly backend: WasmBackend;
  readonly heap: Heap;
  readonly version: string;
  /** Whether it computes with SIMD. */
  readonly simd: boolean;
  /** Stagger's own WebAssembly; undefined where it cannot run. */
  readonly kernels: Simd | undefined;
}

/** What tests ask of it. */
export interface BackendOptions {
  /** Whether Stagger's own WebAssembly may run. */
  readonly ownKernels?: boolean;
  /** Bytes that may be used, fewer than there are. */
  readonly memoryLimit?: number;
  /** Whether SIMD may be used. */
  readonly simd?: boolean;
}

/**
 * Makes "wasm" the backend of this thread's TensorFlow.js, on one thread of its own: a device is one core.
 *
 * @throws {Error} if TensorFlow.js cannot use it: it would go on with another one, silently
 */
export async function startBackend(
  { ownKernels = true, memoryLimit, simd: wanted = true }: BackendOptions = {},
): Promise<StartedBackend> {
  const { setWasmPaths, version_wasm: version } = await import("npm:@tensorflow/tfjs-backend-wasm@4.22.0");
  const files = binaries();
  setWasmPaths(files);
  tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", false);
  if (!wanted) tf.env().set("WASM_HAS_SIMD_SUPPORT", false);
  const simd = await tf.env().getAsync("WASM_HAS_SIMD_SUPPORT") as boolean;
  checkReadable(files[simd ? "tfjs-backend-wasm-simd.wasm" : "tfjs-backend-wasm.wasm"]);
  if (!await tf.setBackend(BACKEND) || tf.getBackend() !== BACKEND) {
    throw new Error('Cannot start engine "wasm": TensorFlow.js cannot use its backend "wasm"');
  }
  const backend = tf.backend() as WasmBackend;
  const heap = new Heap(backend, memoryLimit);
  const kernels = simd && ownKernels ? Simd.start(backend) : undefined;
  registerKernels(kernels);
  return { backend, heap, version, simd, kernels };
}

/** TensorFlow.js would only print what is wrong, and go on with another backend. */
function checkReadable(path: string): void {
  try {
    Deno.openSync(path).close();
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound;
    throw new Error(
      `Cannot start engine "wasm": ${path} ${missing ? "is missing" : "may not be read"}; ` +
        (missing ? "fetch npm's packages anew: deno run --reload" : "allow it: deno run --allow-read"),
    );
  }
}

/** Paths of the binaries in npm's cache: a module that is imported by URL has no folder to look in. */
function binaries() {
  // Written out: Deno sees only literal specifiers ahead of the run.
  const plain = import.meta.resolve(
    "npm:@tensorflow/tfjs-backend-wasm@4.22.0/wasm-out/tfjs-backend-wasm.wasm",
  );
  const simd = import.meta.resolve(
    "npm:@tensorflow/tfjs-backend-wasm@4.22.0/wasm-out/tfjs-backend-wasm-simd.wasm",
  );
  const threaded = import.meta.resolve(
    "npm:@tensorflow/tfjs-backend-wasm@4.22.0/wasm-out/tfjs-backend-wasm-threaded-simd.wasm",
  );
  return {
    "tfjs-backend-wasm.wasm": fileURLToPath(plain),
    "tfjs-backend-wasm-simd.wasm": fileURLToPath(simd),
    "tfjs-backend-wasm-threaded-simd.wasm": fileURLToPath(threaded),
  };
}
