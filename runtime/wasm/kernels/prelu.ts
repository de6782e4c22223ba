/** `Prelu`: the backend's own knows slopes by channel alone. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it, for slopes of every shape that broadcasts to the input's. */
export function registerPrelu(): void {
  register(tf.Prelu, ({ x: given, alpha }) => {
    const x = tf.cast(given!, "float32");
    return tf.where(tf.greater(x, 0), x, tf.mul(x, alpha!));
  });
}
