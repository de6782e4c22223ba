/** `Cumsum` and `Cumprod`: the backend's own write past their memory for axes counted from the end. @module */
import { tf } from "../../../deps.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { register } from "./kernel.ts";

/** Registers both. */
export function registerCumulative(): void {
  for (const name of [tf.Cumsum, tf.Cumprod]) {
    register(name, ({ x }, attributes) => {
      if (attributes.axis >= 0) return;
      const [axis] = tf.util.parseAxisParam(attributes.axis, x!.shape);
      return runKernel(name, { x: x! }, { ...attributes, axis })[0]!;
    });
  }
}
