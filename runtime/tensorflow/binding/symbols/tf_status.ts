/** `tensorflow/c/tf_status.h`. @module */
import { HANDLE, POINTER } from "./types.ts";

export const tfStatusSymbols = {
  TF_NewStatus: { parameters: [], result: HANDLE },
  TF_DeleteStatus: { parameters: [HANDLE], result: "void" },
  TF_GetCode: { parameters: [HANDLE], result: "i32" },
  TF_Message: { parameters: [HANDLE], result: POINTER },
} as const;
