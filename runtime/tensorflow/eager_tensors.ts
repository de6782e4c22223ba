/** Tensors of TensorFlow.js on the backend "tensorflow" and the memory of rings. @module */
import type { tf } from "../../deps.ts";
import { byteLengthOf, type DType, type TensorSpec } from "../../ring/dtype.ts";
import type { EngineTensors, Value } from "../../stages/executor.ts";
import { idOf, type NodeBackend } from "./backend.ts";
import type { HandleTensors } from "./engine_tensors.ts";

/** A `Value` is a `tf.Tensor`. */
export class EagerTensors implements EngineTensors {
  constructor(readonly backend: NodeBackend, readonly handles: HandleTensors) {}

  receive(spec: TensorSpec, payload: Uint8Array<SharedArrayBuffer>): { value: Value; inPlace: boolean } {
    const { value, inPlace } = this.handles.receive(spec, payload);
    const metadata = this.backend.binding.adoptHandle(value as bigint);
    return { value: this.backend.createOutputTensor(metadata), inPlace };
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
