/** `Identity` without a copy: tensors never change, so that two may share their values. @module */
import { tf } from "../../../deps.ts";
import { registerDirect } from "./kernel.ts";
import { alias } from "../backend.ts";

/** Registers it. */
export function registerIdentity(): void {
  registerDirect(
    tf.Identity,
    ({ x }, _attributes, backend) => x!.dtype === "string" ? undefined : alias(backend, x!, x!.shape),
  );
}
