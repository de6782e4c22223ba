/** `_FusedMatMul`: the backend's own adds the bias wrongly where a matrix is transposed. @module */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { register } from "./kernel.ts";

/** Registers it: what is to be transposed is transposed first. */
export function registerFusedMatMul(): void {
  register(tf._FusedMatMul, (inputs, attributes) => {
    const { transposeA, transposeB } = attributes;
    if (!transposeA && !transposeB) return;
    const [a, b] = [turned(inputs.a!, transposeA), turned(inputs.b!, transposeB)];
    const plain = { ...attributes, transposeA: false, transposeB: false };
    return runKernel(tf._FusedMatMul, { ...inputs, a, b }, plain)[0]!;
  });
}

function turned(matrices: tf.Tensor, transpose: boolean): tf.Tensor {
  if (!transpose) return matrices;
  const axes = [...matrices.shape.keys()];
  return tf.transpose(matrices, [...axes.slice(0, -2), axes.at(-1)!, axes.at(-2)!]);
}
