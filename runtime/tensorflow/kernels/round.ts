/** `Round`: TensorFlow's op leaves the values of integers unset. @module */
import { tf } from "../../../deps.ts";
import { typeAttr } from "../binding/attributes.ts";
import { toTf } from "../binding/dtypes.ts";
import type { DType } from "../../../ring/dtype.ts";
import { register } from "./kernel.ts";

/** Registers it: integers stay what they are. */
export function registerRound(): void {
  register(
    tf.Round,
    (backend, { x }) =>
      x!.dtype === "int32"
        ? tf.clone(x!)
        : backend.executeSingleOutput("Round", [typeAttr("T", toTf(x!.dtype as DType))], [x!]),
  );
}
