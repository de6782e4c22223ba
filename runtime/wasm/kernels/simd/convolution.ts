/**
 * Two-dimensional convolution and its gradients as products of patches, which no tensor ever holds: they are
 * packed as the product goes along.
 * @module
 */
import { tf } from "../../../../deps.ts";
import type { WasmBackend } from "../../backend.ts";
import type { Tap, Windows } from "../../simd/job.ts";
import type { Simd } from "../../simd/simd.ts";
import { registerDirect } from "../kernel.ts";
import { convolutionInfo, type Info, isPointwise } from "../pixels.ts";
import { addressOf } from "./address.ts";

/** Registers all three. */
export function registerConvolution(simd: Simd): void {
  registerDirect(tf.Conv2D, ({ x, filter }, attributes, backend) => {
    const info = convolutionInfo(x!.shape, filter!.shape, attributes);
    return info.outShape.includes(0) ? undefined : forward(simd, backend, x!, filter!, info);
  });
  registerDirect(tf.Conv2DBackpropInput, ({ dy, filter }, attributes, backend) => {
    const info = convolutionInfo(attributes.inputShape, filter!.shape, attributes);
    if (dy!.size === 0 || !tf.util.arraysEqual(dy!.shape, info.outShape)) return; // more pixels than there are
    return inputGradient(simd, backend, dy!, filter!, info);
  });
  registerDirect(tf.Conv2DBackpropFilter, ({ x, dy }, attributes, backend) => {
    const info = convolutionInfo(x!.shape, attributes.filterShape, attributes);
    return dy!.size === 0 ? undefined : filterGradient(simd, backend, x!, dy!, info);
  });
}

function forward(simd: Simd, backend: WasmBackend, x: tf.Tensor, filter: tf.Tensor, info: Info) {
  const y = backend.makeOutput(info.outShape, "float32");
  const { inChannels, outChannels, filterHeight, filterWidth } = info;
  const windows = windowsOf(info);
  simd.multiply({
    m: info.batchSize * info.outHeight * info.outWidth,
    n: outChannels,
    k: filterHeight * filterWidth * inChannels,
    a: { address: addressOf(backend, x), stride: inChannels },
    b: { address: addressOf(backend, filter), stride: outChannels },
    c: { address: addressOf(backend, y), stride: outChannels },
    windows,
  });
  return y;
}

/** The transposed patches times the gradients of what each of them made. */
function filterGradient(simd: Simd, backend: WasmBackend, x: tf.Tensor, dy: tf.Tensor, info: Info) {
  const { out: gradient, add } = simd.target(info.filterShape);
  const { inChannels, outChannels, filterHeight, filterWidth } = info;
  simd.multiply({
    m: filterHeight * filterWidth * inChannels,
    n: outChannels,
    k: info.batchSize * info.outHeight * info.outWidth,
    a: { address: addressOf(backend, x), stride: inChannels, transposed: true },
    b: { address: addressOf(backend, dy), stride: outChannels },
    c: { address: addressOf(backend, gradient), stride: outChannels },
    add,
    windows: windowsOf(info),
  });
  return gradient;
}

/**
 * A convolution of the output's gradients. With a stride, the pixels whose places differ by multiples of it
 * meet the same taps: each such phase is a convolution of its own.
 */
function inputGradient(simd: Simd, backend: WasmBackend, dy: tf.Tensor, filter: tf.Tensor, info: Info) {
  const gradient = backend.makeOutput(info.inShape, "float32");
  const { inHeight, inWidth, inChannels, outHeight, outWidth, outChannels, padInfo } = info;
  const rows = phases(info.strideHeight, info.filterHeight, info.dilationHeight, padInfo.top, inHeight);
  const columns = phases(info.strideWidth, info.filterWidth, info.dilationWidth, padInfo.left, inWidth);
  const all = [...rows, ...columns];
  if (all.some(({ taps, size }) => size > 0 && taps.length === 0)) {
    backend.typedArrayFromHeap(gradient).fill(0); // pixels that no filter met
  }
  for (const row of rows) {
    for (const column of columns) {
      const taps = row.taps.flatMap(([y, i]) =>
        column.taps.map(([x, j]): Tap => [y, x, i * info.filterWidth + j])
      );
      if (taps.length === 0 || row.size === 0 || column.size === 0) continue;
      simd.multiply({
        m: info.batchSize * row.size * column.size,
        n: inChannels,
        k: taps.length * outChannels,
        a: { address: addressOf(backend, dy), stride: outChannels },
        b: { address: addressOf(backend, filter), stride: outChannels },
        c: {
          address: addressOf(backend, gradient) + 4 * (row.first * inWidth + column.first) * inChannels,
          stride: inChannels,
        },
        windows: {
          height: outHeight,
          width: outWidth,
          pixel: outChannels,
          channels: outChannels,
          rows: row.size,
          columns: column.size,
          strideY: 1,
          strideX: 1,
          taps,
        },
        turned: true,
        scattered: {
          image: inHeight * inWidth * inChannels,
          row: info.strideHeight * inWidth * inChannels,
          column: info.strideWidth * inChannels,
        },
      });
    }
  }
  return gradient;
}

/** Every `stride`-th pixel along an axis. */
interface Phase {
  readonly first: number;
  readonly size: number;
  /** The filter's taps that meet them, each with the window that it belongs to, from the pixel's own. */
  readonly taps: readonly (readonly [window: number, tap: number])[];
}

function phases(stride: number, filter: number, dilation: number, pad: number, size: number): Phase[] {
  return Array.from({ length: stride }, (_, first) => ({
    first,
    size: Math.max(0, Math.ceil((size - first) / stride)),
    taps: Array.from({ length: filter }, (_, tap) => tap)
      .filter((tap) => (first + pad - tap * dilation) % stride === 0)
      .map((tap) => [(first + pad - tap * dilation) / stride, tap] as const),
  }));
}

/** The windows of a convolution; those of a filter of one pixel that meets each pixel once are plain rows. */
function windowsOf(info: Info): Windows | undefined {
  if (isPointwise(info) && info.strideHeight === 1 && info.strideWidth === 1) return undefined;
  const { filterHeight, filterWidth, dilationHeight, dilationWidth, padInfo, inChannels } = info;
  // Without padding at the sides, what a row of the filter meets lies in one run: one tap stands for it.
  const reach = (info.outWidth - 1) * info.strideWidth + filterWidth;
  const whole = padInfo.left === 0 && reach <= info.inWidth && dilationWidth === 1;
  const columns = whole ? 1 : filterWidth;
  const taps: Tap[] = [];
  for (let row = 0; row < filterHeight; row++) {
    for (let column = 0; column < columns; column++) {
      taps.push([
        row * dilationHeight - padInfo.top,
        column * dilationWidth - padInfo.left,
        row * columns + column,
      ]);
    }
  }
  return {
    height: info.inHeight,
    width: info.inWidth,
    pixel: inChannels,
    channels: whole ? filterWidth * inChannels : inChannels,
    rows: info.outHeight,
    columns: info.outWidth,
    strideY: info.strideHeight,
    strideX: info.strideWidth,
    taps,
  };
}
