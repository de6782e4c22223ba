/**
 * C types as Deno FFI spells them. Opaque pointers travel as 64-bit integers (`bigint`): they come out of
 * `BigUint64Array`s by the hundred, and need no pointer object each.
 * @module
 */

/** An opaque pointer, e.g. `TFE_TensorHandle*`. */
export const HANDLE = "u64";

/** A pointer that is read through `Deno.UnsafePointerView`. */
export const POINTER = "pointer";

/** A pointer to memory that JavaScript owns. */
export const BUFFER = "buffer";

/** `TF_Output`, passed by value: a pointer to the operation and the output's index, 16 bytes with padding. */
export const TF_OUTPUT = { struct: ["pointer", "i32"] } as const;

/** Bytes of a `TF_Output`. */
export const TF_OUTPUT_BYTES = 16;
