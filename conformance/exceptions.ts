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

/** By engine. */
export const EXCEPTIONS: Readonly<Record<"tensorflow" | "wasm", EngineExceptions>> = {
  tensorflow: {
    specs: [],
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
  wasm: { specs: [], kernels: [] },
};
