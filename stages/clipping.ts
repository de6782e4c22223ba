/** Clipping of gradients: by the norm of all of them, or each element by itself. @module */

/** How gradients are clipped. */
export interface Clipping {
  /** `norm`: all are scaled alike, so that the norm of the whole model's is at most `limit`. `value`: to +-`limit`. */
  readonly by: "norm" | "value";
  /** Above 0. */
  readonly limit: number;
}

/**
 * What all gradients are multiplied with: `limit / max(norm, limit)` (Pascanu et al., 2013, algorithm 1; TensorFlow's
 * `clip_by_global_norm`).
 *
 * @param norm of all gradients of the model; where it is not finite, neither are the gradients
 * @returns exactly 1 up to the limit; NaN for a norm that is not finite, as TensorFlow's
 */
export function clipScale(norm: number, limit: number): number {
  if (!Number.isFinite(norm)) return NaN;
  return norm > limit ? limit / norm : 1;
}

/** The norm of parts whose norms are given. */
export function joinedNorm(norms: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < norms.length; i++) sum += norms[i]! ** 2;
  return Math.sqrt(sum);
}
