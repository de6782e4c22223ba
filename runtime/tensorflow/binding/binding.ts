/**
 * The `TFJSBinding` that tfjs-node's kernels run over: eagerly, or recording into a graph.
 *
 * Every kernel goes through `executeOp`. While a recorder is set, ops become nodes of its graph instead of
 * running, and the tensors that they answer with have a shape and a dtype but no values.
 * @module
 */
import { tf } from "../../../deps.ts";
import { sizeOf } from "../../../ring/dtype.ts";
import * as attributes from "./attributes.ts";
import type { Context } from "./context.ts";
import * as dtypes from "./dtypes.ts";
import { execute } from "./eager.ts";
import type { GraphRecorder } from "./graph_recorder.ts";
import { type Argument, CaptureError, type GraphTensor } from "./graph_tensor.ts";
import { handleShape, type HostValues, newHandle, newTensor, readHandle } from "./tensor.ts";
import type { Variable } from "./variable.ts";

/** Largest tensor that a capture takes as a constant, in bytes. */
const MAX_CONSTANT_BYTES = 4096;

/** What an id of tfjs-node's backend stands for. */
type Entry =
  | {
    kind: "eager";
    readonly handle: bigint; /** The value of all elements, if noted. */
    readonly uniform?: number;
  }
  | { kind: "graph"; readonly tensor: GraphTensor }
  | { kind: "variable"; readonly variable: Variable };

/** What tfjs-node's backend is told about a tensor. */
export interface TensorMetadata {
  id: number;
  shape: number[];
  dtype: number;
}

/** The binding of one worker. */
export class Binding {
  readonly TF_FLOAT = dtypes.TF_FLOAT;
  readonly TF_INT32 = dtypes.TF_INT32;
  readonly TF_INT64 = dtypes.TF_INT64;
  readonly TF_BOOL = dtypes.TF_BOOL;
  readonly TF_COMPLEX64 = dtypes.TF_COMPLEX64;
  readonly TF_STRING = dtypes.TF_STRING;
  readonly TF_RESOURCE = dtypes.TF_RESOURCE;
  readonly TF_UINT8 = dtypes.TF_UINT8;
  readonly TF_ATTR_STRING = attributes.ATTR_STRING;
  readonly TF_ATTR_INT = attributes.ATTR_INT;
  readonly TF_ATTR_FLOAT = attributes.ATTR_FLOAT;
  readonly TF_ATTR_BOOL = attributes.ATTR_BOOL;
  readonly TF_ATTR_TYPE = attributes.ATTR_TYPE;
  readonly TF_ATTR_SHAPE = attributes.ATTR_SHAPE;
  readonly TF_Version: string;

  readonly #entries = new Map<number, Entry>();
  #next = 1;
  #recorder: GraphRecorder | undefined;
  /** `TF_Tensor`s behind constants of graphs that are being recorded. */
  #constants: bigint[] = [];
  /** 64-bit scalars that tfjs-node's backend makes for one op and never deletes. */
  #transient: number[] = [];

  constructor(readonly context: Context) {
    this.TF_Version = context.version;
  }

  /** Tensors alive, whatever they stand for. */
  getNumOfTensors(): number {
    return this.#entries.size;
  }

  isUsingGpuDevice(): boolean {
    return this.context.isGpu;
  }

  /** A tensor with these values, on the host. While recording too: it becomes a constant when it is used. */
  createTensor(shape: number[], dtype: number, values: HostValues): number {
    const handle = newHandle(this.context, dtype, shape, values);
    const uniform = this.#recorder && dtype === dtypes.TF_FLOAT
      ? uniformValue(values as Float32Array)
      : undefined;
    const id = this.#add({ kind: "eager", handle, uniform });
    if (dtype === dtypes.TF_INT64) this.#transient.push(id);
    return id;
  }

  deleteTensor(id: number): void {
    const entry = this.#entry(id);
    if (entry.kind === "eager") this.context.tf.TFE_DeleteTensorHandle(entry.handle);
    this.#entries.delete(id);
  }

  /** @throws {CaptureError} while recording: there are no values yet, and those of variables will change */
  tensorDataSync(id: number): Exclude<HostValues, BigUint64Array> {
    const entry = this.#entry(id);
    if (entry.kind === "eager") return readHandle(this.context, entry.handle);
    if (entry.kind === "graph" || this.#recorder) throw new CaptureError("reads values while it computes");
    const handle = this.#readVariable(entry.variable);
    try {
      return readHandle(this.context, handle);
    } finally {
      this.context.tf.TFE_DeleteTensorHandle(handle);
    }
  }

  executeOp(
    name: string,
    attrs: readonly attributes.OpAttribute[],
    ids: readonly number[],
    outputCount: number,
  ): TensorMetadata[] {
    try {
      return this.#recorder
        ? this.#recorder.op(name, attrs, ids.map((id) => this.resolve(id)), outputCount).map((t) =>
          this.#metadata(t)
        )
        : this.#executeEagerly(name, attrs, ids, outputCount);
    } finally {
      for (const id of this.#transient.splice(0)) this.deleteTensor(id);
    }
  }

  /**
   * Runs `body` with ops going to `recorder`.
   *
   * @throws {CaptureError} where it does what a captured function could not repeat: draws random numbers, which
   * would be the same at every call, or assigns a variable, which would happen once
   */
  record<T>(recorder: GraphRecorder, body: () => T): T {
    const previous = this.#recorder;
    const { random } = Math;
    const { prototype } = tf.Variable;
    const { assign } = prototype;
    this.#recorder = recorder;
    Math.random = () => {
      throw new CaptureError("draws random numbers while it computes");
    };
    prototype.assign = () => {
      throw new CaptureError("assigns a variable while it computes");
    };
    try {
      return body();
    } finally {
      Math.random = random;
      prototype.assign = assign;
      this.#recorder = previous;
    }
  }

  /** The recorder that ops go to, if any. */
  get recorder(): GraphRecorder | undefined {
    return this.#recorder;
  }

  /** Frees what recorded graphs needed. Call it when their functions are made. */
  endCapture(): void {
    for (const tensor of this.#constants.splice(0)) this.context.tf.TF_DeleteTensor(tensor);
  }

  /** A tensor that a captured function is given at each call. */
  argument(
    recorder: GraphRecorder,
    source: Argument,
    dtype: number,
    shape: readonly number[],
  ): TensorMetadata {
    return this.#metadata(recorder.input(source, dtype, shape));
  }

  /** Registers a graph's tensor. */
  adopt(tensor: GraphTensor): TensorMetadata {
    return this.#metadata(tensor);
  }

  /** Registers a handle, which becomes the binding's. */
  adoptHandle(handle: bigint): TensorMetadata {
    return this.#eagerMetadata(handle);
  }

  /** From now on `id` stands for the value of a variable; the value that it had is freed. */
  bindVariable(id: number, variable: Variable): void {
    const entry = this.#entry(id);
    if (entry.kind === "eager") this.context.tf.TFE_DeleteTensorHandle(entry.handle);
    this.#entries.set(id, { kind: "variable", variable });
  }

  /** The value of a float scalar, or the first of a vector. */
  readScalar(handle: bigint): number {
    return (readHandle(this.context, handle) as Float32Array)[0]!;
  }

  /** The handle behind `id`. It stays the binding's. */
  handleOf(id: number): bigint {
    const entry = this.#entry(id);
    if (entry.kind !== "eager") throw new TypeError("Cannot take the handle of a tensor that has no values");
    return entry.handle;
  }

  /** What `id` is in the graph that made it; a value that no graph made is taken into the one being recorded. */
  graphTensor(id: number): GraphTensor {
    const entry = this.#entry(id);
    return entry.kind === "graph" ? entry.tensor : this.resolve(id);
  }

  /** What `id` is in the graph that is being recorded. */
  resolve(id: number): GraphTensor {
    const recorder = this.#recorder!;
    const entry = this.#entry(id);
    if (entry.kind === "graph") return recorder.import(entry.tensor);
    if (entry.kind === "variable") return recorder.read(entry.variable);
    const { context } = this;
    const dtype = context.tf.TFE_TensorHandleDataType(entry.handle);
    const shape = handleShape(context, entry.handle);
    if (sizeOf(shape) * (dtypes.TF_BYTES[dtype] ?? Infinity) <= MAX_CONSTANT_BYTES) {
      const tensor = context.tf.TFE_TensorHandleResolve(entry.handle, context.status);
      context.check("Read a constant");
      return this.#constant(tensor, dtype);
    }
    if (entry.uniform !== undefined) return this.#fill(shape, entry.uniform);
    throw new CaptureError(`uses a tensor of shape [${shape}] that was not made by an op`);
  }

  #fill(shape: readonly number[], value: number): GraphTensor {
    const dims = newTensor(this.context, dtypes.TF_INT32, [shape.length], Int32Array.from(shape));
    const scalar = newTensor(this.context, dtypes.TF_FLOAT, [], Float32Array.of(value));
    const inputs = [this.#constant(dims, dtypes.TF_INT32), this.#constant(scalar, dtypes.TF_FLOAT)];
    const { typeAttr } = attributes;
    const attrs = [typeAttr("T", dtypes.TF_FLOAT), typeAttr("index_type", dtypes.TF_INT32)];
    return this.#recorder!.op("Fill", attrs, inputs, 1)[0]!;
  }

  #constant(tensor: bigint, dtype: number): GraphTensor {
    this.#constants.push(tensor);
    return this.#recorder!.constant(tensor, dtype);
  }

  #executeEagerly(
    name: string,
    attrs: readonly attributes.OpAttribute[],
    ids: readonly number[],
    outputCount: number,
  ): TensorMetadata[] {
    const temporary: bigint[] = [];
    const handles = ids.map((id) => {
      const entry = this.#entry(id);
      if (entry.kind === "eager") return entry.handle;
      if (entry.kind === "graph") {
        throw new CaptureError(`keeps a tensor of the capture beyond it (op ${name})`);
      }
      const handle = this.#readVariable(entry.variable);
      temporary.push(handle);
      return handle;
    });
    try {
      return execute(this.context, name, attrs, handles, outputCount).map((handle) =>
        this.#eagerMetadata(handle)
      );
    } finally {
      for (const handle of temporary) this.context.tf.TFE_DeleteTensorHandle(handle);
    }
  }

  #readVariable(variable: Variable): bigint {
    const attrs = [attributes.typeAttr("dtype", variable.dtype)];
    return execute(this.context, "ReadVariableOp", attrs, [variable.handle], 1)[0]!;
  }

  #eagerMetadata(handle: bigint): TensorMetadata {
    const { context } = this;
    const dtype = context.tf.TFE_TensorHandleDataType(handle);
    return { id: this.#add({ kind: "eager", handle }), shape: handleShape(context, handle), dtype };
  }

  #metadata(tensor: GraphTensor): TensorMetadata {
    return { id: this.#add({ kind: "graph", tensor }), shape: [...tensor.shape], dtype: tensor.dtype };
  }

  #add(entry: Entry): number {
    const id = this.#next++;
    this.#entries.set(id, entry);
    return id;
  }

  #entry(id: number): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new Error(`Cannot find tensor ${id}: it was disposed`);
    return entry;
  }
}

function uniformValue(values: Float32Array): number | undefined {
  if (values.byteLength <= MAX_CONSTANT_BYTES) return undefined;
  const [first] = values;
  return values.every((value) => value === first) ? first : undefined;
}
