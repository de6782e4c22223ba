/** `BatchMatMul` of two matrices, faster than the backend's own where one is transposed. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { product } from "./product.ts";

/** Registers it: what is to be transposed is transposed first. */
export function registerMatMul(): void {
  register(tf.BatchMatMul, ({ a, b }, { transposeA, transposeB }) => {
    if (a!.rank !== 2 || b!.rank !== 2 || (!transposeA && !transposeB) || a!.size * b!.size === 0) return;
    return product(a!, b!, { a: transposeA, b: transposeB });
  });
}
