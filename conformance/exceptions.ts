/**
 * What does not pass, and why. Nothing else may fail, and nothing of this may pass: the run then fails, so that
 * this file stays true.
 *
 * `specs` is the name of a spec as the run prints it, or a pattern for several, every one of which fails.
 * `kernel` is a kernel whose calls cannot be captured in a TensorFlow function, or not compared; a stage that cannot
 * be captured runs op by op instead.
 * @module
 */

/** Specs that fail. */
export interface SpecException {
  readonly specs: string | RegExp;
  readonly reason: string;
}

/** A kernel that cannot be captured, or gives something else each time. */
export interface KernelException {
  readonly kernel: string;
  readonly reason: string;
}

/** What is known of an engine. */
export interface EngineExceptions {
  /** Specs that fail, of those that the engine is judged by. */
  readonly specs: readonly SpecException[];
  /** Kernels that cannot be captured or compared. */
  readonly kernels: readonly KernelException[];
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

/** By engine. */
export const EXCEPTIONS: Readonly<Record<"tensorflow" | "wasm", EngineExceptions>> = {
  tensorflow: {
    specs: BETTER_THAN_SPECS,
    kernels: [
      {
        kernel: "Multinomial",
        reason: "It draws: TensorFlow's generator goes on from call to call, whatever the seed.",
      },
      ...["NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5", "Unique"].map((kernel) => ({
        kernel,
        reason: "How long its result is depends on values, which are not there while a function is captured.",
      })),
    ],
  },
  wasm: { specs: BETTER_THAN_SPECS, kernels: [] },
};
