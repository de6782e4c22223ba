/** Products of matrices of every kind: a factor that is to be transposed is packed so. @module */
import { tf } from "../../../../deps.ts";
import { finishFused } from "../../../fused.ts";
import type { Simd } from "../../simd/simd.ts";
import { register, registerDirect } from "../kernel.ts";
import { addressOf } from "./address.ts";

/** Registers `BatchMatMul` and `_FusedMatMul`. */
export function registerMatMul(simd: Simd): void {
  registerDirect(tf.BatchMatMul, ({ a, b }, { transposeA, transposeB }, backend) => {
    if (a!.dtype !== "float32" || b!.dtype !== "float32") return;
    const [aRows, aColumns] = a!.shape.slice(-2) as [number, number];
    const [bRows, bColumns] = b!.shape.slice(-2) as [number, number];
    const [m, k] = transposeA ? [aColumns, aRows] : [aRows, aColumns];
    const [n, inner] = transposeB ? [bRows, bColumns] : [bColumns, bRows];
    if (k !== inner || m * n * k === 0) return;
    const outer = tf.broadcast_util.assertAndGetBroadcastShape(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
    const batch = tf.util.sizeFromShape(outer);
    const [aBatch, bBatch] = [a!.size / (m * k), b!.size / (n * k)];
    // Broadcasting within the batch is left to the backend's own.
    if ((aBatch !== batch && aBatch !== 1) || (bBatch !== batch && bBatch !== 1)) return;
    const { out: c, add } = simd.target([...outer, m, n]);
    const [from, by, to] = [addressOf(backend, a!), addressOf(backend, b!), addressOf(backend, c)];
    for (let i = 0; i < batch; i++) {
      simd.multiply({
        m,
        n,
        k,
        a: { address: from + (aBatch > 1 ? 4 * i * m * k : 0), stride: aColumns, transposed: transposeA },
        b: { address: by + (bBatch > 1 ? 4 * i * n * k : 0), stride: bColumns, transposed: transposeB },
        c: { address: to + 4 * i * m * n, stride: n },
        add,
      });
    }
    return c;
  });
  register(tf._FusedMatMul, ({ a, b, bias, preluActivationWeights: slopes }, attributes) => {
    const { transposeA, transposeB } = attributes;
    return finishFused(tf.matMul(a!, b!, transposeA, transposeB), bias, slopes, attributes);
  });
}
