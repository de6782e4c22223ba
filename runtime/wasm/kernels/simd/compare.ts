/** Comparisons, choices and extremes of floats, several values at once; the backend's own go one by one. @module */
import { tf } from "../../../../deps.ts";
import type { WasmBackend } from "../../backend.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** In the order of the module's numbers. */
const COMPARISONS = [tf.Equal, tf.NotEqual, tf.Greater, tf.GreaterEqual, tf.Less, tf.LessEqual];

/** Registers them, for operands of one shape and for single values. */
export function registerComparisons(simd: Simd): void {
  COMPARISONS.forEach((name, op) =>
    registerDirect(name, ({ a, b }, _attributes, backend) => {
      const pair = paired(backend, a!, b!);
      if (!pair) return;
      const out = backend.makeOutput(pair.shape, "bool");
      simd.exports.compare(op, ...pair.operands, addressOf(backend, out));
      return out;
    })
  );
  for (const [name, largest] of [[tf.Maximum, 1], [tf.Minimum, 0]] as const) {
    registerDirect(name, ({ a, b }, _attributes, backend) => {
      const pair = paired(backend, a!, b!);
      if (!pair) return;
      const out = backend.makeOutput(pair.shape, "float32");
      simd.exports.extreme(largest, ...pair.operands, addressOf(backend, out));
      return out;
    });
  }
  registerDirect(tf.Select, ({ condition, t, e }, _attributes, backend) => {
    if (t!.dtype !== e!.dtype || t!.dtype === "bool" || t!.dtype === "string") return;
    if (!tf.util.arraysEqual(condition!.shape, t!.shape) || t!.size !== e!.size) return;
    const out = backend.makeOutput(t!.shape, t!.dtype);
    const at = (x: tf.TensorInfo) => addressOf(backend, x);
    simd.exports.select(at(condition!), at(t!), at(e!), t!.size, at(out));
    return out;
  });
  registerDirect(tf.Cast, ({ x }, { dtype }, backend) => {
    if (x!.dtype !== "bool" || dtype !== "float32") return;
    const out = backend.makeOutput(x!.shape, "float32");
    simd.exports.truthToFloat(addressOf(backend, x!), x!.size, addressOf(backend, out));
    return out;
  });
}

interface Pair {
  readonly shape: number[];
  readonly operands: [a: number, aStep: number, b: number, bStep: number, length: number];
}

/** Two operands as the module takes them; undefined if they need more broadcasting than of a single value. */
function paired(backend: WasmBackend, a: tf.Tensor, b: tf.Tensor): Pair | undefined {
  if (a.dtype !== "float32" || b.dtype !== "float32") return undefined;
  const shape = tf.broadcast_util.assertAndGetBroadcastShape(a.shape, b.shape);
  const length = tf.util.sizeFromShape(shape);
  const step = (t: tf.Tensor) => t.size === length ? 4 : t.size === 1 ? 0 : undefined;
  const [aStep, bStep] = [step(a), step(b)];
  if (aStep === undefined || bStep === undefined) return undefined;
  return { shape, operands: [addressOf(backend, a), aStep, addressOf(backend, b), bStep, length] };
}
