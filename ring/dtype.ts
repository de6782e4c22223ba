/** The dtypes of TensorFlow.js and their size in bytes. @module */

/** A TensorFlow.js dtype. */
export type DType = "float32" | "int32" | "bool" | "complex64" | "string";

/** A tensor's static description: `shape` in elements, batch axis first. */
export interface TensorSpec {
  /** Elements along each axis. */
  readonly shape: readonly number[];
  /** Type of an element. */
  readonly dtype: DType;
}

/** Dtypes in the order of their code in a message header. Append only. */
export const DTYPES: readonly DType[] = ["float32", "int32", "bool", "complex64", "string"];

/** Bytes per element; a string has no fixed size and counts 0. */
export const BYTES_PER_ELEMENT: Readonly<Record<DType, number>> = {
  float32: 4,
  int32: 4,
  bool: 1,
  complex64: 8,
  string: 0,
};

/** Elements in a tensor of this shape (1 for a scalar). */
export function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (const dim of shape) size *= dim;
  return size;
}

/** Bytes a tensor of fixed-size elements takes. */
export function byteLengthOf(spec: TensorSpec): number {
  return sizeOf(spec.shape) * BYTES_PER_ELEMENT[spec.dtype];
}

/** Rounds `bytes` up to a multiple of `alignment` (a power of two). */
export function align(bytes: number, alignment = 64): number {
  return Math.ceil(bytes / alignment) * alignment;
}
