/**
 * Kernels that take parts of tensors. The backend's own copy the whole input first, go value by value, or
 * take integers for floats.
 * @module
 */
import { tf } from "../../../deps.ts";
import { register, registerDirect } from "./kernel.ts";
import { copyPart } from "./runs.ts";

/** Registers them. */
export function registerParts(): void {
  registerDirect(tf.Slice, ({ x }, attributes, backend) => {
    if (x!.dtype === "string") return;
    const [begin, size] = tf.slice_util.parseSliceParams(x!, attributes.begin, attributes.size) as [
      number[],
      number[],
    ];
    tf.slice_util.assertParamsValid(x!, begin, size);
    return copyPart(backend, x!, { begin, step: begin.map(() => 1), size });
  });
  registerDirect(tf.StridedSlice, ({ x }, { begin, end, strides, ...masks }, backend) => {
    const info = tf.slice_util.sliceInfo(
      x!.shape,
      begin,
      end,
      strides,
      masks.beginMask,
      masks.endMask,
      masks.ellipsisMask,
      masks.newAxisMask,
      masks.shrinkAxisMask,
    );
    if (x!.dtype === "string") return;
    const size = tf.slice_util.computeOutShape(info.begin, info.end, info.strides);
    const part = copyPart(backend, x!, { begin: info.begin, step: info.strides, size });
    return { ...part, shape: info.finalShape };
  });
  registerDirect(tf.Reverse, ({ x }, { dims }, backend) => {
    const axes = tf.util.parseAxisParam(dims, x!.shape);
    const turned = x!.shape.map((_, axis) => axes.includes(axis));
    return copyPart(backend, x!, {
      begin: x!.shape.map((dim, axis) => turned[axis] ? dim - 1 : 0),
      step: turned.map((turned) => turned ? -1 : 1),
      size: x!.shape,
    });
  });
  register(tf.Unpack, ({ value }, { axis }) => {
    const { shape, rank, dtype } = value!;
    if (dtype === "string") return;
    const along: number = axis < 0 ? axis + rank : axis;
    const rest = shape.filter((_, i) => i !== along);
    return Array.from({ length: shape[along]! }, (_, at) => {
      const begin = shape.map((_, i) => i === along ? at : 0);
      const size = shape.map((dim, i) => i === along ? 1 : dim);
      return tf.reshape(tf.slice(value!, begin, size), rest);
    });
  });
  register(tf.SplitV, ({ x }, { numOrSizeSplits, axis }) => {
    const { shape, dtype } = x!;
    if (dtype === "string") return;
    const along = tf.util.parseAxisParam(axis, shape)[0]!;
    let at = 0;
    return tf.backend_util.prepareSplitSize(x!, numOrSizeSplits, along).map((length) => {
      const begin = shape.map((_, i) => i === along ? at : 0);
      const size = shape.map((dim, i) => i === along ? length : dim);
      at += length;
      return tf.slice(x!, begin, size);
    });
  });
}
