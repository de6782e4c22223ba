/** What a stage's layers may ask about the forward that runs them. @module */
import type { tf } from "../deps.ts";
import type { LayerVariable } from "./tfjs.ts";

/** The running statistics of a BatchNorm layer. */
export interface RunningStatistics {
  readonly movingMean: LayerVariable;
  readonly movingVariance: LayerVariable;
  /** How much of the old value an update keeps. */
  readonly momentum: number;
}

/** Mean and biased variance of one BatchNorm's input over one micro-batch, each of shape `[channels]`. */
export interface BatchStatistics {
  readonly layer: RunningStatistics;
  readonly mean: tf.Tensor;
  readonly variance: tf.Tensor;
}

/**
 * Random numbers that do not depend on how the batch is cut or on which device a layer lives: a function of
 * seed, layer, step and sample.
 */
export interface RandomSource {
  /**
   * Uniform numbers in [0, 1).
   *
   * @param layer name of the layer that draws
   * @param shape `[samples, ...]`; row `i` belongs to the micro-batch's sample `i`, unless `shared`
   * @param shared the same numbers for every micro-batch
   */
  uniform(layer: string, shape: number[], shared?: boolean): tf.Tensor;
}

/** The forward that is running. */
export interface ForwardContext {
  readonly random: RandomSource;
  /** Filled by BatchNorm layers while training. */
  readonly statistics: BatchStatistics[];
}

let current: ForwardContext | undefined;

/** Runs `forward` so that layers can ask `context()`. */
export function withContext<T>(context: ForwardContext, forward: () => T): T {
  const previous = current;
  current = context;
  try {
    return forward();
  } finally {
    current = previous;
  }
}

/** The context of the forward that is running, if a stage runs it. */
export function context(): ForwardContext | undefined {
  return current;
}
