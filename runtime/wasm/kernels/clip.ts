/** `ClipByValue`: the backend's own makes a number of what is none, and hides that training has diverged. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** Registers it. */
export function registerClip(): void {
  register(tf.ClipByValue, ({ x }, { clipValueMin, clipValueMax }) => {
    const bound = (value: number) => tf.fill(x!.shape, value, x!.dtype as "float32");
    const [least, most] = [bound(clipValueMin), bound(clipValueMax)];
    return tf.where(tf.less(x!, least), least, tf.where(tf.greater(x!, most), most, x!));
  });
}
