/** Samples that are made when they are asked for. @module */
import type { TensorSpec } from "../../ring/dtype.ts";

/** Pairs of input and target by index; what a batch is filled from. */
export interface Samples {
  /** How many there are. */
  readonly length: number;
  /** One input, without the batch axis; float32. */
  readonly input: TensorSpec;
  /** One target, without the batch axis; float32. */
  readonly target: TensorSpec;
  /** Names of the classes, where targets are one-hot. */
  readonly classes?: readonly string[];
  /**
   * Fills one sample's place in a batch.
   *
   * @param index from 0 to `length - 1`
   * @param input room for one input, row-major
   * @param target room for one target, row-major
   * @param epoch which pass over the data this is, counted from 0 (default 0): samples that are augmented are
   * others in each
   */
  read(index: number, input: Float32Array, target: Float32Array, epoch?: number): void | Promise<void>;
}
