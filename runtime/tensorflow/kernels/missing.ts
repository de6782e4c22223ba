/** Kernels that tfjs-node lacks, or lacks for some inputs, and TensorFlow has an op for. @module */
import { tf } from "../../../deps.ts";
import type { DType } from "../../../ring/dtype.ts";
import { runKernel } from "../../../stages/tfjs.ts";
import { finishFused } from "../../fused.ts";
import { typeAttr } from "../binding/attributes.ts";
import { TF_INT32, toTf } from "../binding/dtypes.ts";
import { bool, FLOAT, int, register, registerFor, text } from "./kernel.ts";

const INT = typeAttr("T", TF_INT32);

/** Registers them. */
export function registerMissing(): void {
  register("BitwiseAnd", (backend, { a, b }) => backend.executeSingleOutput("BitwiseAnd", [INT], [a!, b!]));
  register(tf.DenseBincount, (backend, { x, weights }, { size, binaryOutput }) => {
    const attributes = [
      typeAttr("Tidx", TF_INT32),
      typeAttr("T", toTf(weights!.dtype as DType)),
      bool("binary_output", binaryOutput),
    ];
    return backend.executeSingleOutput("DenseBincount", attributes, [x!, tf.scalar(size, "int32"), weights!]);
  });
  register(tf.SearchSorted, (backend, { sortedSequence, values }, { side }) => {
    const attributes = [typeAttr("T", toTf(values!.dtype as DType)), typeAttr("out_type", TF_INT32)];
    const op = side === "left" ? "LowerBound" : "UpperBound";
    return backend.executeSingleOutput(op, attributes, [sortedSequence!, values!]);
  });
  for (const name of [tf.SparseSegmentSum, tf.SparseSegmentMean]) {
    register(name, (backend, { data, indices, segmentIds }) => {
      const attributes = [
        typeAttr("T", toTf(data!.dtype as DType)),
        typeAttr("Tidx", TF_INT32),
        typeAttr("Tsegmentids", TF_INT32),
      ];
      return backend.executeSingleOutput(name, attributes, [data!, indices!, segmentIds!]);
    });
  }
  register(tf.StringNGrams, (backend, { data, dataSplits }, attrs) => {
    const attributes = [
      typeAttr("Tsplits", TF_INT32),
      text("separator", attrs.separator),
      int("ngram_widths", attrs.nGramWidths),
      text("left_pad", attrs.leftPad),
      text("right_pad", attrs.rightPad),
      int("pad_width", attrs.padWidth),
      bool("preserve_short_sequences", attrs.preserveShortSequences),
    ];
    return backend.executeMultipleOutputs("StringNGrams", attributes, [data!, dataSplits!], 2);
  });
  register(tf.MaxPoolWithArgmax, (backend, { x }, { filterSize, strides, pad, includeBatchInIndex }) => {
    const shape = x!.shape as [number, number, number, number];
    const info = tf.backend_util.computePool2DInfo(shape, filterSize, strides, [1, 1], pad);
    const attributes = [
      FLOAT,
      typeAttr("Targmax", TF_INT32),
      int("ksize", [1, info.filterHeight, info.filterWidth, 1]),
      int("strides", [1, info.strideHeight, info.strideWidth, 1]),
      text("padding", info.padInfo.type === "SAME" ? "SAME" : "VALID"),
      bool("include_batch_in_index", includeBatchInIndex),
    ];
    return backend.executeMultipleOutputs("MaxPoolWithArgmax", attributes, [x!], 2);
  });
  registerFor(
    tf.FusedConv2D,
    (_inputs, { dataFormat }) => dataFormat === "NCHW",
    (_backend, { x, filter, bias, preluActivationWeights: slopes }, attributes) =>
      finishFused(runKernel(tf.Conv2D, { x: x!, filter: filter! }, attributes)[0]!, bias, slopes, attributes),
  );
  // One index for each update; TensorFlow's op takes one list of indices for each.
  registerFor(
    tf.ScatterNd,
    ({ indices }) => indices!.rank === 1,
    (_backend, { indices, updates }, attributes) =>
      runKernel(tf.ScatterNd, { indices: tf.reshape(indices!, [-1, 1]), updates: updates! }, attributes)[0]!,
  );
  const ofIntegers = ({ x }: Record<string, tf.Tensor>) => x!.dtype === "int32";
  const asFloats = (kernel: string, x: tf.Tensor, attributes: Record<string, unknown>) =>
    runKernel(kernel, { x: tf.cast(x, "float32") }, attributes)[0]!;
  registerFor(
    tf.LeakyRelu,
    ofIntegers,
    (_backend, { x }, attributes) => asFloats(tf.LeakyRelu, x!, attributes),
  );
  registerFor(
    tf.Step,
    ofIntegers,
    (_backend, { x }, attributes) => tf.cast(asFloats(tf.Step, x!, attributes), "int32"),
  );
}
