/** Tensors of TensorFlow.js on the backend "tensorflow" and the memory of rings. @module */
import type { tf } from "../../../deps.ts";
import { byteLengthOf, type DType, type TensorSpec } from "../../../ring/dtype.ts";
import type { EngineTensors, Value } from "../../../stages/executor.ts";
import { idOf, type NodeBackend } from "./backend.ts";
import { toTf } from "./dtypes.ts";
import type { HandleTensors } from "./engine_tensors.ts";
import { handleFromBytes } from "./tensor.ts";

/** A `Value` is a `tf.Tensor`. */
export class EagerTensors implements EngineTensors {
  constructor(readonly backend: NodeBackend, readonly handles: HandleTensors) {}

  /**
   * A copy on the CPU too: what ops keep beyond the backward (a gradient that accumulates, a tensor that a layer
   * holds on to) may be a view of what they were given.
   */
  receive(spec: TensorSpec, payload: Uint8Array<SharedArrayBuffer>): { value: Value; inPlace: boolean } {
    const { context } = this.handles;
    const handle = context.device
      ? this.handles.receive(spec, payload).value as bigint
      : handleFromBytes(context, toTf(spec.dtype), spec.shape, payload);
    return {
      value: this.backend.createOutputTensor(this.backend.binding.adoptHandle(handle)),
      inPlace: false,
    };
  }

  specOf(value: Value): TensorSpec {
    const { shape, dtype } = value as tf.Tensor;
    return { shape, dtype: dtype as DType };
  }

  byteLengthOf(value: Value): number {
    return byteLengthOf(this.specOf(value));
  }

  copyTo(value: Value, payload: Uint8Array): void {
    const { binding } = this.backend;
    this.handles.copyTo(binding.handleOf(idOf(this.backend, value as tf.Tensor)), payload);
  }

  free(value: Value): void {
    (value as tf.Tensor).dispose();
  }
}
