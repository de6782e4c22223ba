/** ReLU's gradient in one pass. @module */
import { RELU_GRAD } from "../../../../stages/layers/relu_gradient.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers `RELU_GRAD`. */
export function registerReluGradient(simd: Simd): void {
  registerDirect(RELU_GRAD, ({ dy, y }, _attributes, backend) => {
    const dx = backend.makeOutput(y!.shape, "float32");
    const at = (t: typeof dx) => addressOf(backend, t);
    simd.exports.reluGradient(at(dy!), at(y!), y!.size, at(dx));
    return dx;
  });
}
