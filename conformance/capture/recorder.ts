/** Records the kernel calls that reach a backend while specs run. @module */
import { tf } from "../../deps.ts";
import { BACKEND } from "../../runtime/tensorflow/binding/backend.ts";
import type { DType } from "../../ring/dtype.ts";

/** Most elements of a recorded call's inputs and outputs together. */
const MAX_ELEMENTS = 1 << 20;
/** Most calls of a kernel that are kept of one spec: some call it for each of a picture's 256 shades. */
const MAX_CALLS = 16;

/** A tensor with its values; strings as their bytes. */
export interface RecordedTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: Float32Array | Int32Array | Uint8Array | readonly Uint8Array[];
}

/** One call of a kernel. */
export interface RecordedCall {
  readonly kernel: string;
  readonly attributes: Record<string, unknown>;
  /** By name; an array's indices where the kernel takes a list. An optional input that was not given is left out. */
  readonly inputs: ReadonlyMap<string, RecordedTensor>;
  readonly isList: boolean;
  readonly outputs: readonly RecordedTensor[];
}

type KernelFunction = tf.KernelConfig["kernelFunc"];
type Backend = tf.KernelBackend & { readonly tensorMap: { has(dataId: object): boolean } };

/** Keeps the first call of each kernel with these attributes, shapes and dtypes, out of the specs that pass. */
export class KernelRecorder {
  readonly #calls = new Map<string, RecordedCall>();
  /** Those of the spec that runs. */
  readonly #pending = new Map<string, RecordedCall>();
  readonly #counts = new Map<string, number>();
  readonly #originals = new Map<tf.KernelConfig, KernelFunction>();

  /** What was recorded, in order. */
  get calls(): RecordedCall[] {
    return [...this.#calls.values()];
  }

  /** Records calls from now on, those that kernels make of each other too. */
  start(): void {
    for (const config of tf.getKernelsForBackend(BACKEND)) {
      const run = config.kernelFunc;
      this.#originals.set(config, run);
      config.kernelFunc = (call) => {
        const outputs = run(call);
        this.#note(config.kernelName, call, Array.isArray(outputs) ? outputs : [outputs]);
        return outputs;
      };
    }
  }

  /** The spec that made the calls since the last one has ended. */
  specDone(passed: boolean): void {
    if (passed) { for (const [key, call] of this.#pending) this.#calls.set(key, call); }
    this.#pending.clear();
    this.#counts.clear();
  }

  /** Records no longer. */
  stop(): void {
    for (const [config, run] of this.#originals) config.kernelFunc = run;
    this.#originals.clear();
  }

  #note(kernel: string, call: Parameters<KernelFunction>[0], outputs: readonly tf.TensorInfo[]): void {
    const count = this.#counts.get(kernel) ?? 0;
    if (count === MAX_CALLS) return;
    const backend = call.backend as Backend;
    const attributes = (call.attrs ?? {}) as Record<string, unknown>;
    const given = Object.entries(call.inputs).filter(([, tensor]) => tensor) as [string, tf.TensorInfo][];
    const infos = given.map(([, tensor]) => tensor);
    const spec = ({ shape, dtype }: tf.TensorInfo) => `${dtype}[${shape}]`;
    const key = [kernel, text(attributes), ...given.map(([name, tensor]) => name + spec(tensor))].join("|");
    const all = [...infos, ...outputs];
    const elements = all.reduce((sum, { shape }) => sum + tf.util.sizeFromShape(shape), 0);
    if (this.#calls.has(key) || this.#pending.has(key) || elements > MAX_ELEMENTS) return;
    if (!all.every(({ dataId }) => backend.tensorMap.has(dataId))) return; // an input that the kernel never read
    const read = ({ shape, dtype, dataId }: tf.TensorInfo): RecordedTensor => ({
      dtype: dtype as DType,
      shape: [...shape],
      values: values(backend, dataId, dtype as DType),
    });
    this.#counts.set(kernel, count + 1);
    this.#pending.set(key, {
      kernel,
      attributes: structuredClone(attributes),
      inputs: new Map(given.map(([name, tensor]) => [name, read(tensor)])),
      isList: Array.isArray(call.inputs),
      outputs: outputs.map(read),
    });
  }
}

/** A copy of a tensor's values, in the array type of its dtype. */
function values(backend: tf.KernelBackend, dataId: object, dtype: DType): RecordedTensor["values"] {
  const values = backend.readSync(dataId) as unknown;
  switch (dtype) {
    case "string":
      return (values as (Uint8Array | string)[]).map((value) =>
        typeof value === "string" ? tf.util.encodeString(value) : value.slice()
      );
    case "int32":
      return Int32Array.from(values as ArrayLike<number>);
    case "bool":
      return Uint8Array.from(values as ArrayLike<number>);
    default:
      return Float32Array.from(values as ArrayLike<number>);
  }
}

/** Attributes as text; numbers that JSON does not know are kept apart. */
function text(attributes: Record<string, unknown>): string {
  return JSON.stringify(
    attributes,
    (_, value) => typeof value === "number" && !Number.isFinite(value) ? String(value) : value,
  );
}
