/** `Cast` to truth values: the backend's own keeps the low byte of a number. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it: what is not zero is true. */
export function registerCast(): void {
  register(tf.Cast, ({ x }, { dtype }) => {
    if (dtype !== "bool" || x!.dtype === "bool") return;
    return tf.notEqual(x!, tf.scalar(0, x!.dtype));
  });
}
