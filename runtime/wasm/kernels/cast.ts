/**
 * `Cast`: the backend's own keeps the low byte of a number as its truth value, and copies where nothing
 * changes.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register, registerDirect } from "./kernel.ts";
import { alias } from "../backend.ts";

/** Registers it: what is not zero is true. */
export function registerCast(): void {
  register(tf.Cast, ({ x }, { dtype }) => {
    if (dtype === "bool") return tf.notEqual(x!, tf.scalar(0, x!.dtype));
  });
  registerDirect(
    tf.Cast,
    ({ x }, { dtype }, backend) =>
      dtype === x!.dtype && dtype !== "string" ? alias(backend, x!, x!.shape) : undefined,
  );
}
