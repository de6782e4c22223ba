/** `MaxPoolGrad`: the backend's own gives no gradient to values below zero. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";
import { covered, met, poolInfo, returned } from "./pixels.ts";

/** Registers it: the gradient goes to the first pixel of a window, row by row, that has its maximum. */
export function registerMaxPoolGradient(): void {
  register(tf.MaxPoolGrad, ({ dy, input, output }, attributes) => {
    const info = poolInfo(input!.shape, attributes);
    const pixels = covered(input!, info, -Infinity);
    const zeros = tf.zerosLike(dy!);
    const parts: tf.Tensor[] = [];
    let open: tf.Tensor | undefined;
    for (let row = 0; row < info.filterHeight; row++) {
      for (let column = 0; column < info.filterWidth; column++) {
        const equal = tf.equal(met(pixels, row, column, info), output!);
        const first = open ? tf.logicalAnd(open, equal) : equal;
        open = open ? tf.logicalAnd(open, tf.logicalNot(equal)) : tf.logicalNot(equal);
        parts.push(returned(tf.where(first, dy!, zeros), row, column, info));
      }
    }
    return parts.reduce((sum, part) => tf.add(sum, part));
  });
}
