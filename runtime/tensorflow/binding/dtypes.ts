/** TensorFlow's data types (`TF_DataType`) and those of TensorFlow.js. @module */
import type { DType } from "../../../ring/dtype.ts";

export const TF_FLOAT = 1;
export const TF_DOUBLE = 2;
export const TF_INT32 = 3;
export const TF_UINT8 = 4;
export const TF_STRING = 7;
export const TF_COMPLEX64 = 8;
export const TF_INT64 = 9;
export const TF_BOOL = 10;
export const TF_RESOURCE = 20;
export const TF_UINT64 = 23;

/** Bytes of a `TF_TString`. */
export const TSTRING_BYTES = 24;

/** Bytes per element in TensorFlow's memory. */
export const TF_BYTES: Readonly<Record<number, number>> = {
  [TF_FLOAT]: 4,
  [TF_DOUBLE]: 8,
  [TF_INT32]: 4,
  [TF_UINT8]: 1,
  [TF_STRING]: TSTRING_BYTES,
  [TF_COMPLEX64]: 8,
  [TF_INT64]: 8,
  [TF_BOOL]: 1,
  [TF_UINT64]: 8,
};

const TO_TF: Readonly<Record<DType, number>> = {
  float32: TF_FLOAT,
  int32: TF_INT32,
  bool: TF_BOOL,
  complex64: TF_COMPLEX64,
  string: TF_STRING,
};

/** The `TF_DataType` of a TensorFlow.js dtype. */
export function toTf(dtype: DType): number {
  return TO_TF[dtype];
}
