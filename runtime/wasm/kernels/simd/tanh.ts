/** `Tanh`, four values at once. @module */
import { tf } from "../../../../deps.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers it, for floats. */
export function registerTanh(simd: Simd): void {
  registerDirect(tf.Tanh, ({ x }, _attributes, backend) => {
    if (x!.dtype !== "float32") return;
    const y = backend.makeOutput(x!.shape, "float32");
    simd.exports.tanh(addressOf(backend, x!), x!.size, addressOf(backend, y));
    return y;
  });
}
