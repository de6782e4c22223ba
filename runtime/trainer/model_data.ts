/** A caller's data, checked against the model and made into batches. @module */
import { tf } from "../../deps.ts";
import type { TensorSpec } from "../../ring/dtype.ts";
import type { ModelGraph } from "../../stages/graph.ts";
import { internals } from "../../stages/tfjs.ts";
import {
  type BatchSource,
  datasetSource,
  type EpochOptions,
  samplesSource,
  tensorSource,
} from "../data/batch_source.ts";
import { shown } from "../checks.ts";
import { joinBatches } from "../data/joined_batches.ts";
import type { Samples } from "../data/samples.ts";
import type { BatchedData, Data, FitArgs } from "./trainer_args.ts";

/** Inputs and targets in the model's order. */
export type ModelTensors = [inputs: tf.Tensor[], targets: tf.Tensor[]];

/** Whether batches come on demand, not from whole tensors. */
export function isBatched(data: unknown): data is BatchedData {
  return data instanceof tf.data.Dataset || isSamples(data);
}

/** @throws {TypeError} for what is neither a dataset nor samples */
export function expectBatched(method: string, data: unknown): void {
  if (isBatched(data)) return;
  throw new TypeError(
    `Cannot use ${
      shown(data)
    } in ${method}: expected a tf.data.Dataset of { xs, ys } batches, or samples such as ` +
      `mnist() makes; tf.data.zip makes a dataset of tensors`,
  );
}

/** Samples in an epoch; undefined for a dataset, which does not tell. */
export function lengthOf(data: BatchedData): number | undefined {
  return isSamples(data) ? data.length : undefined;
}

function isSamples(data: unknown): data is Samples {
  return typeof (data as Samples)?.read === "function" && typeof (data as Samples).length === "number";
}

/** Checks data and makes batch sources for one model. */
export class ModelData {
  constructor(readonly model: tf.LayersModel, readonly graph: ModelGraph) {}

  /**
   * Inputs and targets in the model's order, of the ranks that it wants, as tfjs-layers' own `fit` checks them.
   *
   * @param temporary gets the tensors made on the way; the caller disposes them
   * @throws {RangeError} for data that does not fit
   */
  standardize(x: Data, y: Data, temporary: tf.Tensor[]): ModelTensors {
    this.#inModelOrder("inputs", x);
    this.#inModelOrder("targets", y);
    let standard: ModelTensors;
    try {
      standard = internals(this.model).standardizeUserDataXY(x, y, false);
    } catch (error) {
      const { message } = error as Error;
      throw new RangeError(`${message}; give data of the model's shapes, or build the model for these`, {
        cause: error,
      });
    }
    const given = new Set(
      [x, y].flatMap((data) => data instanceof tf.Tensor ? [data] : Object.values(data ?? {})),
    );
    temporary.push(...standard.flat().filter((t) => !given.has(t)));
    return standard;
  }

  /** Batches that a dataset or samples make. @param limit most batches in an epoch of a dataset */
  async batched(data: BatchedData, options: EpochOptions, limit?: number): Promise<BatchSource> {
    const source = isSamples(data) ? samplesSource(data, options) : joinBatches(
      await datasetSource(data, (kind, value) => this.#inModelOrder(kind, value as Data), limit),
      options.accumulate ?? 1,
    );
    this.check(source);
    return source;
  }

  /** Batches for validation. @param what names the data in errors */
  async validation(
    data: NonNullable<FitArgs["validationData"]>,
    args: Pick<FitArgs, "batchSize" | "validationBatches">,
    temporary: tf.Tensor[],
    what: string,
  ): Promise<BatchSource> {
    const options = { batchSize: args.batchSize ?? 32, shuffle: false, seed: 0 };
    if (isBatched(data)) return await this.batched(data, options, args.validationBatches);
    if (!Array.isArray(data) || data.length !== 2) {
      throw new TypeError(`Cannot use ${shown(data)} as ${what}: expected [x, y], a dataset or samples`);
    }
    try {
      return await tensorSource(...this.standardize(data[0], data[1], temporary), options);
    } catch (error) {
      throw new RangeError(`${what}: ${(error as Error).message}`, { cause: error });
    }
  }

  /** Batches of inputs alone. */
  async inputs(x: Data, batchSize: number): Promise<BatchSource> {
    const tensors = this.#inModelOrder("inputs", x);
    const source = await tensorSource(tensors, [], { batchSize, shuffle: false, seed: 0 });
    this.#checkInputs(source.inputs);
    return source;
  }

  /** @throws {RangeError} for batches of other shapes than the model's */
  check({ inputs, targets }: BatchSource): void {
    this.#checkInputs(inputs);
    const { outputs } = this.graph;
    if (targets.length !== outputs.length) {
      throw new RangeError(`Cannot use ${targets.length} targets: the model has ${outputs.length} outputs`);
    }
    const sparse = this.#sparseOutputs();
    targets.forEach(({ shape }, i) => {
      const output = outputs[i]!;
      const expected = sparse[i] ? [...output.shape.slice(1, -1), 1] : output.shape.slice(1);
      checkShape("target", output.name, shape, expected, sparse[i] ?? false);
    });
  }

  #checkInputs(inputs: readonly TensorSpec[]): void {
    this.graph.inputs.forEach(({ name, shape }, i) =>
      checkShape("input", name, inputs[i]!.shape, shape.slice(1), false)
    );
  }

  #inModelOrder(kind: "inputs" | "targets", data: Data): tf.Tensor[] {
    const names = this.graph[kind === "inputs" ? "inputs" : "outputs"].map(({ name }) => name);
    const list = data instanceof tf.Tensor
      ? [data]
      : Array.isArray(data)
      ? data
      : names.map((name) => (data as Record<string, tf.Tensor>)?.[name]);
    if (list.length !== names.length || list.some((t) => !(t instanceof tf.Tensor))) {
      throw new TypeError(
        `Cannot use ${shown(data)} as ${kind}: expected ${names.length === 1 ? "a tensor" : "tensors"} for ` +
          `${
            names.join(", ")
          }; give a tensor, an array of tensors in this order, or an object by these names`,
      );
    }
    return list as tf.Tensor[];
  }

  /** Which outputs take class numbers as targets. */
  #sparseOutputs(): boolean[] {
    const { lossFunctions } = internals(this.model);
    // A bundler may have added to the name.
    return lossFunctions.map((f) => f.name.startsWith("sparseCategoricalCrossentropy"));
  }
}

/** The last share of the samples apart. @param temporary gets the parts; the caller disposes them */
export function splitTensors(
  [x, y]: ModelTensors,
  share: number,
  temporary: tf.Tensor[],
): [ModelTensors, ModelTensors] {
  const samples = x[0]!.shape[0]!;
  const at = Math.floor(samples * (1 - share));
  if (at < 1 || at >= samples) {
    throw new RangeError(
      `Cannot split ${samples} samples at validationSplit ${share}: one part would be empty`,
    );
  }
  const part = (from: number, count: number) => (t: tf.Tensor) => {
    const slice = tf.slice(t, from, count);
    temporary.push(slice);
    return slice;
  };
  const head = part(0, at);
  const tail = part(at, samples - at);
  return [[x.map(head), y.map(head)], [x.map(tail), y.map(tail)]];
}

function checkShape(
  kind: string,
  name: string,
  shape: readonly number[],
  expected: readonly (number | null)[],
  sparse: boolean,
): void {
  const fits = shape.length === expected.length &&
    shape.every((dim, i) => expected[i] === null || expected[i] === dim);
  if (fits) return;
  throw new RangeError(
    `Cannot use ${kind} "${name}" of shape [${shape}] per sample: expected [${expected}]` +
      `${sparse ? " (class numbers)" : ""}; give data of the model's shapes, or build the model for these`,
  );
}
