/** Handles of the engine "tensorflow" and the memory of rings. @module */
import { byteLengthOf, type DType, type TensorSpec } from "../../../ring/dtype.ts";
import type { EngineTensors, Value } from "../../../stages/executor.ts";
import type { Context } from "./context.ts";
import { copyOut, fromTf, handleShape, wrapMemory } from "./tensor.ts";

/** A `Value` is a tensor handle (`bigint`). */
export class HandleTensors implements EngineTensors {
  constructor(readonly context: Context) {}

  receive(spec: TensorSpec, payload: Uint8Array<SharedArrayBuffer>): { value: Value; inPlace: boolean } {
    const { context } = this;
    const host = wrapMemory(context, spec, payload);
    if (!context.device) return { value: host, inPlace: true };
    // The copy to a GPU is done when the call returns.
    const value = context.tf.TFE_TensorHandleCopyToDevice(
      host,
      context.pointer,
      context.device,
      context.status,
    );
    context.tf.TFE_DeleteTensorHandle(host);
    context.check("Copy a tensor to the device");
    return { value, inPlace: false };
  }

  specOf(value: Value): TensorSpec {
    const dtype = fromTf(this.context.tf.TFE_TensorHandleDataType(value as bigint)) as DType;
    return { shape: handleShape(this.context, value as bigint), dtype };
  }

  byteLengthOf(value: Value): number {
    return byteLengthOf(this.specOf(value));
  }

  copyTo(value: Value, payload: Uint8Array): void {
    copyOut(this.context, value as bigint, payload);
  }

  free(value: Value): void {
    this.context.tf.TFE_DeleteTensorHandle(value as bigint);
  }
}
