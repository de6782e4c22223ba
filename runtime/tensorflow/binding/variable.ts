/** TensorFlow's resource variables: weights, gradient accumulators and optimizer slots, updated in place. @module */
import { sizeOf, type TensorSpec } from "../../../ring/dtype.ts";
import { ATTR_BOOL, ATTR_SHAPE, ATTR_STRING, typeAttr } from "./attributes.ts";
import type { Context } from "./context.ts";
import { TF_BYTES, toTf } from "./dtypes.ts";
import { execute } from "./eager.ts";
import { copyOut, handleFromBytes, type HostValues, newHandle, openFloats } from "./tensor.ts";

let created = 0;

/** A variable on the context's device. It holds nothing until it is assigned. */
export class Variable {
  /** The resource's handle. */
  readonly handle: bigint;
  readonly dtype: number;
  readonly shape: readonly number[];

  constructor(readonly context: Context, readonly name: string, spec: TensorSpec) {
    this.dtype = toTf(spec.dtype);
    this.shape = spec.shape;
    const [handle] = execute(
      context,
      "VarHandleOp",
      [
        typeAttr("dtype", this.dtype),
        { name: "shape", type: ATTR_SHAPE, value: spec.shape },
        { name: "shared_name", type: ATTR_STRING, value: `${name}/${created++}` },
        { name: "container", type: ATTR_STRING, value: "" },
      ],
      [],
      1,
    );
    this.handle = handle!;
  }

  get byteLength(): number {
    return sizeOf(this.shape) * TF_BYTES[this.dtype]!;
  }

  /** Sets the value; the values are copied. */
  assign(values: HostValues): void {
    this.#assign(newHandle(this.context, this.dtype, this.shape, values));
  }

  /** Sets the value from memory in the variable's own format; the memory is copied. */
  assignBytes(bytes: Uint8Array): void {
    this.#assign(handleFromBytes(this.context, this.dtype, this.shape, bytes));
  }

  #assign(value: bigint): void {
    execute(this.context, "AssignVariableOp", assignAttributes(this), [this.handle, value], 0);
    this.context.tf.TFE_DeleteTensorHandle(value);
  }

  /** Copies the value into `target`. */
  copyTo(target: Uint8Array): void {
    const [value] = execute(
      this.context,
      "ReadVariableOp",
      [typeAttr("dtype", this.dtype)],
      [this.handle],
      1,
    );
    try {
      copyOut(this.context, value!, target);
    } finally {
      this.context.tf.TFE_DeleteTensorHandle(value!);
    }
  }

  /**
   * The value of a variable of floats, where it lies on a CPU; on a GPU, a copy.
   *
   * @returns values that may be read until `close`; the variable may not be updated before
   */
  openValues(): { values: Float32Array; close(): void } {
    const { context } = this;
    const { tf } = context;
    const attributes = [typeAttr("dtype", this.dtype)];
    const [value] = execute(context, "ReadVariableOp", attributes, [this.handle], 1);
    const { values, close } = openFloats(context, value!, sizeOf(this.shape));
    return {
      values,
      close() {
        close();
        tf.TFE_DeleteTensorHandle(value!);
      },
    };
  }

  /** Frees the value and the handle. */
  dispose(): void {
    execute(this.context, "DestroyResourceOp", [{
      name: "ignore_lookup_error",
      type: ATTR_BOOL,
      value: true,
    }], [
      this.handle,
    ], 0);
    this.context.tf.TFE_DeleteTensorHandle(this.handle);
  }
}

/** Attributes of `AssignVariableOp` for a variable. */
export function assignAttributes(variable: Variable) {
  return [typeAttr("dtype", variable.dtype), { name: "validate_shape", type: ATTR_BOOL, value: false }];
}
