/** `tensorflow/c/tf_tensor.h` and `tf_tstring.h`. @module */
import { BUFFER, HANDLE, POINTER } from "./types.ts";

export const tfTensorSymbols = {
  TF_NewTensor: { parameters: ["i32", BUFFER, "i32", BUFFER, "usize", HANDLE, HANDLE], result: HANDLE },
  TF_AllocateTensor: { parameters: ["i32", BUFFER, "i32", "usize"], result: HANDLE },
  TF_DeleteTensor: { parameters: [HANDLE], result: "void" },
  TF_TensorByteSize: { parameters: [HANDLE], result: "usize" },
  TF_TensorData: { parameters: [HANDLE], result: HANDLE },
  TF_TensorElementCount: { parameters: [HANDLE], result: "i64" },
  TF_StringInit: { parameters: [HANDLE], result: "void" },
  TF_StringCopy: { parameters: [HANDLE, BUFFER, "usize"], result: "void" },
  TF_StringGetDataPointer: { parameters: [HANDLE], result: POINTER },
  TF_StringGetSize: { parameters: [HANDLE], result: "usize" },
} as const;
