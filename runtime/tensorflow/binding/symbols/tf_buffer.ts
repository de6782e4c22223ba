/** `tensorflow/c/tf_buffer.h`. @module */
import { HANDLE, POINTER } from "./types.ts";

export const tfBufferSymbols = {
  TF_NewBuffer: { parameters: [], result: POINTER },
  TF_DeleteBuffer: { parameters: [POINTER], result: "void" },
  TF_DeleteDeviceList: { parameters: [HANDLE], result: "void" },
} as const;
