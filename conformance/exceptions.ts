/**
 * What does not pass, and why. Nothing else may fail, and nothing of this may pass: the run then fails, so that
 * this file stays true.
 * @module
 */

/** Specs that fail. */
export interface SpecException {
  /** The name of a spec as the run prints it, or a pattern for several, every one of which fails. */
  readonly specs: string | RegExp;
  readonly reason: string;
}

/** A kernel with a reason. */
export interface KernelException {
  readonly kernel: string;
  readonly reason: string;
}

/** What is known of an engine. */
export interface EngineExceptions {
  /** Specs that fail, of those that the engine is judged by. */
  readonly specs: readonly SpecException[];
  /** Kernels that the engine lacks: specs fail with tfjs-core's message that says so. */
  readonly lacking: readonly KernelException[];
  /**
   * Kernels that cannot be captured in a TensorFlow function, or not compared. A stage that cannot be captured
   * runs op by op instead.
   */
  readonly uncapturable: readonly KernelException[];
}

/** Specs that Stagger's own gradients fail by being right. */
const BETTER_THAN_SPECS: readonly SpecException[] = [
  {
    specs: "depthwiseConv2d gradients throws error on dilations > 1",
    reason: "Stagger gives this gradient, which TensorFlow.js refuses to.",
  },
  {
    specs: /^mirrorPad (grad|gradient with clones)$/,
    reason:
      "These specs expect TensorFlow.js's mistake: the gradient of a mirrored border belongs to the values " +
      "that it mirrors, and TensorFlow.js drops it. [1, 2, 3] is padded to [3, 2, 1, 2, 3, 2], so that output " +
      "gradients [10, ..., 60] make [30, 120, 60]; the specs say [30, 40, 50].",
  },
];

/** Neither a layer of tfjs-layers nor a loss has strings. */
const STRINGS = "TensorFlow.js's backend keeps numbers alone in its memory. Strings are not needed to train.";

/** By engine. */
export const EXCEPTIONS: Readonly<Record<"tensorflow" | "wasm", EngineExceptions>> = {
  tensorflow: {
    specs: BETTER_THAN_SPECS,
    lacking: [],
    uncapturable: [
      {
        kernel: "Multinomial",
        reason: "It draws: TensorFlow's generator goes on from call to call, whatever the seed.",
      },
      ...[
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "NonMaxSuppressionV5",
        "SparseSegmentMean",
        "SparseSegmentSum",
        "StringNGrams",
        "Unique",
      ].map((kernel) => ({
        kernel,
        reason: "How long its result is depends on values, which are not there while a function is captured.",
      })),
    ],
  },
  wasm: {
    specs: [
      ...BETTER_THAN_SPECS,
      {
        specs: "avgPool gradient x=[3,3,1] f=[3,3] s=1 p=explicit",
        reason:
          "The spec expects TensorFlow.js's mistake: its average leaves padding out, and its gradient counts it.",
      },
      {
        specs: /^pool (max|avg) x=\[2,2,3\] f=\[1,1\] s=2 p=1 fractional outputs default rounding$/,
        reason:
          "The specs expect TensorFlow.js's mistake: where windows of one pixel make as many pixels as there " +
          "were, it takes them for the same ones, though most of these windows lie in padding.",
      },
      {
        specs: /^(equal|notEqual|less|lessEqual|greater|greaterEqual) should support string comparison$/,
        reason: STRINGS,
      },
      { specs: /^fill (1|2)D fill string$/, reason: STRINGS },
      { specs: /^squeeze (default|specific dimension|all ones|squeeze only ones)$/, reason: STRINGS },
      { specs: /^tile (1|2|6)[dD] string tensor$/, reason: STRINGS },
      { specs: "sparseToDense should work for string", reason: STRINGS },
      { specs: /^tensor\.toString (1|2)d long string tensor verbose$/, reason: STRINGS },
    ],
    lacking: [
      {
        kernel: "Complex",
        reason: "TensorFlow.js's backend has no complex numbers; no layer of tfjs-layers needs them.",
      },
      ...["RaggedGather", "RaggedRange", "RaggedTensorToTensor"].map((kernel) => ({
        kernel,
        reason:
          "Ragged tensors come with preprocessing of text in converted graphs; no layer of tfjs-layers has them.",
      })),
      { kernel: "StaticRegexReplace", reason: STRINGS },
    ],
    uncapturable: [],
  },
};
