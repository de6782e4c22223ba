/** Where a trainer's batches come from: tensors, a `tf.data.Dataset`, or samples made on demand. @module */
import { tf } from "../../deps.ts";
import { BYTES_PER_ELEMENT, type DType, sizeOf, type TensorSpec } from "../../ring/dtype.ts";
import { batchCount, batches } from "./batches.ts";
import { epochLength, epochOrder, type OrderOptions } from "./epoch_order.ts";
import type { Samples } from "./samples.ts";

/** One tensor of a batch, on the host. */
export interface HostTensor {
  /** One sample, without the batch axis. */
  readonly spec: TensorSpec;
  /** Copies samples `first` to `first + count - 1` of the batch. @param target room for them */
  copyRows(first: number, count: number, target: Uint8Array): void;
}

/** One batch, on the host. */
export interface HostBatch {
  readonly size: number;
  readonly inputs: readonly HostTensor[];
  readonly targets: readonly HostTensor[];
}

/** Batches, epoch by epoch. */
export interface BatchSource {
  /** Samples, without the batch axis; one per input of the model. */
  readonly inputs: readonly TensorSpec[];
  /** One per output; empty where there is nothing to compare with. */
  readonly targets: readonly TensorSpec[];
  /** Samples in the largest batch. */
  readonly batchSize: number;
  /** Batches of the caller's that are joined in it. Absent: 1. */
  readonly joined?: number;
  /** Samples in an epoch, where that is known. */
  readonly samples: number | undefined;
  /** Batches in an epoch, where that is known. */
  readonly batches: number | undefined;
  /** The batches of one epoch. A batch is valid until the next is asked for. */
  epoch(index: number): AsyncGenerator<HostBatch, void, void>;
}

/** How batches are taken from tensors or samples. */
export interface EpochOptions extends OrderOptions {
  /** Batches of so many samples that are joined in one. Default: 1. */
  readonly accumulate?: number;
}

/** Batches gathered from whole tensors, batch axis first. Their values are read once. */
export async function tensorSource(
  inputs: readonly tf.Tensor[],
  targets: readonly tf.Tensor[],
  options: EpochOptions,
): Promise<BatchSource> {
  const x = await Promise.all(inputs.map(readTensor));
  const y = await Promise.all(targets.map(readTensor));
  const samples = inputs[0]!.shape[0]!;
  const sizes = batchSizes(samples, options);
  const { batchSize } = sizes;
  return {
    inputs: x.map(({ spec }) => spec),
    targets: y.map(({ spec }) => spec),
    ...sizes,
    async *epoch(index) {
      const order = epochOrder(samples, { ...options, batchSize }, index);
      for (let start = 0; start < order.length; start += batchSize) {
        const rows = order.subarray(start, start + batchSize);
        const gathered = (t: WholeTensor): HostTensor => ({
          spec: t.spec,
          copyRows: (first, count, target) => gather(t, rows.subarray(first, first + count), target),
        });
        yield { size: rows.length, inputs: x.map(gathered), targets: y.map(gathered) };
      }
    },
  };
}

/** Batches gathered from samples, the next one filled while the present one is computed. */
export function samplesSource(samples: Samples, options: EpochOptions): BatchSource {
  const sizes = batchSizes(samples.length, options);
  const { shuffle, seed, sharding } = options;
  const order = { batchSize: sizes.batchSize, shuffle, seed, sharding };
  return {
    inputs: [samples.input],
    targets: [samples.target],
    ...sizes,
    async *epoch(index) {
      for await (const batch of batches(samples, { ...order, epoch: index, reuse: true })) {
        yield {
          size: batch.size,
          inputs: [arrayTensor(batch.inputs, samples.input)],
          targets: [arrayTensor(batch.targets, samples.target)],
        };
      }
    },
  };
}

/** Batches of so many samples. Larger batches hold those of the caller's that follow one another. */
function batchSizes(
  length: number,
  { batchSize, accumulate = 1, sharding }: EpochOptions,
): Pick<BatchSource, "batchSize" | "joined" | "samples" | "batches"> {
  if (length === 0) throw new RangeError("Cannot use 0 samples: expected at least 1");
  const samples = epochLength(length, sharding);
  const own = Math.min(batchSize, samples);
  const joined = Math.min(accumulate, batchCount(samples, own));
  return { batchSize: joined * own, joined, samples, batches: batchCount(samples, joined * own) };
}

/** @throws {RangeError} for a batch with other tensors than wanted: a dataset may make any */
export function checkAlike(
  { inputs, targets }: HostBatch,
  wanted: Pick<BatchSource, "inputs" | "targets">,
): void {
  const given = [...inputs, ...targets];
  [...wanted.inputs, ...wanted.targets].forEach((spec, i) => {
    const got = given[i]?.spec;
    if (got && got.dtype === spec.dtype && got.shape.join() === spec.shape.join()) return;
    const text = got ? `${got.dtype} of shape [${got.shape}]` : "nothing";
    throw new RangeError(
      `Cannot run a batch with ${text} per sample: the first one had ${spec.dtype} of shape [${spec.shape}]; ` +
        `give batches of one kind`,
    );
  });
}

/** What a `tf.data.Dataset` for training yields. */
export interface DatasetElement {
  readonly xs: tf.TensorContainer;
  readonly ys?: tf.TensorContainer;
}

/**
 * Batches that a dataset makes: it yields `{ xs, ys }` with the batch axis first. They stay valid.
 *
 * @param flatten puts inputs or targets into the model's order
 * @throws {TypeError} if its elements are of another form
 */
export async function datasetSource(
  dataset: tf.data.Dataset<tf.TensorContainer>,
  flatten: (kind: "inputs" | "targets", value: unknown) => tf.Tensor[],
  limit: number | undefined,
): Promise<BatchSource> {
  const read = async (element: unknown): Promise<HostBatch> => {
    const { xs, ys } = (element ?? {}) as DatasetElement;
    if (xs === undefined) {
      throw new TypeError("Cannot train on the dataset: expected elements { xs, ys }; map it to such ones");
    }
    const x = flatten("inputs", xs);
    const y = ys === undefined ? [] : flatten("targets", ys);
    try {
      const inputs = await Promise.all(x.map(readTensor));
      const targets = await Promise.all(y.map(readTensor));
      return { size: x[0]!.shape[0]!, inputs: inputs.map(wholeBatch), targets: targets.map(wholeBatch) };
    } finally {
      tf.dispose(element as tf.TensorContainer);
    }
  };
  const peek = await dataset.iterator();
  const first = await peek.next();
  if (first.done) throw new RangeError("Cannot train on the dataset: it yields no batch");
  const batch = await read(first.value);
  const size = dataset.size === null || !Number.isFinite(dataset.size) ? undefined : dataset.size;
  return {
    inputs: batch.inputs.map(({ spec }) => spec),
    targets: batch.targets.map(({ spec }) => spec),
    batchSize: batch.size,
    samples: undefined,
    batches: limit ?? size,
    async *epoch() {
      const iterator = await dataset.iterator();
      for (let i = 0; limit === undefined || i < limit; i++) {
        const { value, done } = await iterator.next();
        if (done) return;
        yield await read(value);
      }
    },
  };
}

interface WholeTensor {
  readonly spec: TensorSpec;
  readonly bytes: Uint8Array;
  readonly rowBytes: number;
}

async function readTensor(t: tf.Tensor): Promise<WholeTensor> {
  const dtype = t.dtype as DType;
  if (BYTES_PER_ELEMENT[dtype] === 0) {
    throw new TypeError(`Cannot train on tensors of dtype "${dtype}": expected numbers; encode them first`);
  }
  const values = ofDtype(dtype, await t.data() as Float32Array);
  const spec = { shape: t.shape.slice(1), dtype };
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return { spec, bytes, rowBytes: sizeOf(spec.shape) * BYTES_PER_ELEMENT[dtype] };
}

/** TensorFlow.js keeps a cast tensor's values in the array that they were in before: integers may say float32. */
function ofDtype(
  dtype: DType,
  values: Float32Array | Int32Array | Uint8Array,
): Float32Array | Int32Array | Uint8Array {
  switch (dtype) {
    case "int32":
      return values instanceof Int32Array ? values : Int32Array.from(values);
    case "bool":
      return values instanceof Uint8Array ? values : Uint8Array.from(values);
    default:
      return values instanceof Float32Array ? values : Float32Array.from(values);
  }
}

function gather({ bytes, rowBytes }: WholeTensor, rows: Uint32Array, target: Uint8Array): void {
  rows.forEach((row, i) => target.set(bytes.subarray(row * rowBytes, (row + 1) * rowBytes), i * rowBytes));
}

function wholeBatch({ spec, bytes, rowBytes }: WholeTensor): HostTensor {
  return {
    spec,
    copyRows: (first, count, target) =>
      target.set(bytes.subarray(first * rowBytes, (first + count) * rowBytes)),
  };
}

function arrayTensor(values: Float32Array, spec: TensorSpec): HostTensor {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return wholeBatch({ spec, bytes, rowBytes: sizeOf(spec.shape) * BYTES_PER_ELEMENT[spec.dtype] });
}
