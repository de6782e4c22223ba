/**
 * Initial weights, drawn several times faster than tfjs-layers draws them, from a seed of each layer's own. A
 * saved model names the stock initializer with the same config, so that it loads in plain TensorFlow.js.
 *
 * Source: He et al., "Delving Deep into Rectifiers", 2015, section 2.2, as torchvision's ResNet applies it.
 * @module
 */
import { tf } from "../deps.ts";

/** An initializer of tfjs-layers. */
export type Initializer = ReturnType<typeof tf.initializers.varianceScaling>;

/** The spread of weights by the layer's fans: Keras's `VarianceScaling`. */
export interface VarianceScaling {
  /** Over the fan, the square of the normal's sigma, or a third of the square of the uniform's limit. */
  readonly scale: number;
  readonly mode: "fanIn" | "fanOut" | "fanAvg";
  /** `normal` is cut off at two sigma, as in tfjs-layers. */
  readonly distribution: "normal" | "uniform";
}

/** Options of `varianceScaling`. */
export interface VarianceScalingOptions extends VarianceScaling {
  /** An integer from 0; without one, every tensor is drawn anew. `layerSeed` makes one for a layer. */
  readonly seed?: number;
}

/** Where the normal distribution is cut off, in sigma. */
const CUT = 2;

/** Integral of exp(-x² / 2) from -2 to 2. */
const MASS = 2.392576026645216;

/** Variance of the standard normal distribution once it is cut off at two sigma. */
const CUT_VARIANCE = 1 - 2 * CUT * Math.exp(-(CUT ** 2) / 2) / MASS;

/**
 * Kernels of convolutions before a ReLU: variance 2 / fanOut, as PyTorch's `kaiming_normal_` with mode
 * `fan_out`. PyTorch's normal is not cut off: the scale makes up for the variance in its tails.
 */
export const KAIMING_FAN_OUT: VarianceScaling = {
  scale: 2 / CUT_VARIANCE,
  mode: "fanOut",
  distribution: "normal",
};

/** Kernels of dense layers: uniform up to 1 / sqrt(fanIn) either way, as PyTorch's `Linear`. */
export const LINEAR: VarianceScaling = { scale: 1 / 3, mode: "fanIn", distribution: "uniform" };

/** The typings have the base class alone, whose `apply` is abstract. */
interface StockVarianceScaling extends Initializer {
  apply(shape: number[], dtype?: tf.DataType): tf.Tensor;
}

const Stock = tf.initializers.varianceScaling(LINEAR).constructor as new (
  config: VarianceScalingOptions,
) => StockVarianceScaling;

class FastVarianceScaling extends Stock {
  readonly #options: VarianceScalingOptions;

  constructor(options: VarianceScalingOptions) {
    super(options);
    this.#options = options;
  }

  override apply(shape: number[], dtype: tf.DataType = "float32"): tf.Tensor {
    if (dtype !== "float32") return super.apply(shape, dtype);
    const { scale, mode, distribution, seed = randomSeed() } = this.#options;
    const variance = scale / fan(shape, mode);
    const bits = randomBits(shape.reduce((a, b) => a * b, 1), seed);
    const values = distribution === "normal"
      ? cutNormal(bits, Math.sqrt(variance))
      : uniform(bits, Math.sqrt(3 * variance));
    return tf.tensor(values, shape);
  }
}

/**
 * Stands in for `tf.initializers.varianceScaling`: the same distribution and config, other numbers. Like
 * tfjs-layers' own, one with a seed gives every tensor of one shape the same values.
 *
 * @throws {TypeError | RangeError} if an option is of a wrong type or has a value that it cannot have
 *
 * @example
 * ```ts
 * // `kernelInitializer` of a layer named "conv1"; `apply` is what the layer calls.
 * const initializer = varianceScaling({ ...KAIMING_FAN_OUT, seed: layerSeed(42, "conv1") });
 * console.log(initializer.apply([3, 3, 64, 128]).shape);
 * ```
 */
export function varianceScaling(options: VarianceScalingOptions): Initializer {
  const { scale, mode, distribution, seed } = options;
  if (!(scale > 0 && scale < Infinity)) {
    throw new RangeError(`Cannot draw weights: expected "scale" above 0: got ${scale}`);
  }
  if (!["fanIn", "fanOut", "fanAvg"].includes(mode)) {
    throw new RangeError(`Cannot draw weights: expected "mode" "fanIn", "fanOut" or "fanAvg": got "${mode}"`);
  }
  if (!["normal", "uniform"].includes(distribution)) {
    throw new RangeError(
      `Cannot draw weights: expected "distribution" "normal" or "uniform": got "${distribution}"`,
    );
  }
  if (seed !== undefined) checkSeed(seed);
  return new FastVarianceScaling(options);
}

/** @throws {TypeError | RangeError} if it is not an integer from 0 that a number holds exactly */
export function checkSeed(seed: number): void {
  if (Number.isSafeInteger(seed) && seed >= 0) return;
  throw new (typeof seed === "number" ? RangeError : TypeError)(
    `Cannot draw weights: expected "seed" to be an integer from 0 to ${Number.MAX_SAFE_INTEGER}: ` +
      `got ${seed}; leave it out to draw anew each time`,
  );
}

/** A seed for every call to differ. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

/**
 * The seed of one layer's weights: a function of the model's seed and the layer's name. From 1 to 2³² - 1,
 * since tfjs-layers takes 0 for no seed.
 *
 * Source: the 32-bit FNV-1a hash of both, as text.
 */
export function layerSeed(seed: number, layer: string): number {
  let hash = 0x811c9dc5;
  for (const char of `${seed}/${layer}`) hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193);
  return (hash >>> 0) || 1;
}

/** A kernel's shape is `[...window, inputs, outputs]`. */
function fan(shape: readonly number[], mode: VarianceScaling["mode"]): number {
  // Keras's rule for weights that are not kernels.
  const root = Math.sqrt(shape.reduce((a, b) => a * b, 1));
  const window = shape.slice(0, -2).reduce((a, b) => a * b, 1);
  const [fanIn, fanOut] = shape.length < 2 || shape.length > 5
    ? [root, root]
    : [window * shape.at(-2)!, window * shape.at(-1)!];
  return Math.max(1, mode === "fanIn" ? fanIn : mode === "fanOut" ? fanOut : (fanIn + fanOut) / 2);
}

/** Source: sfc32 of PractRand by Chris Doty-Humphrey, a generator of 128 bits of state and no products. */
function randomBits(length: number, seed: number): Uint32Array<ArrayBuffer> {
  const bits = new Uint32Array(length);
  let [a, b, c, counter] = [0, seed | 0, (seed / 2 ** 32) | 0, 1];
  // The first rounds only mix the seed in.
  for (let i = -12; i < length; i++) {
    const out = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + out) | 0;
    if (i >= 0) bits[i] = out;
  }
  return bits;
}

/** Turns random bits in place into numbers from `-limit` up to `limit`. */
function uniform(bits: Uint32Array<ArrayBuffer>, limit: number): Float32Array {
  const values = new Float32Array(bits.buffer);
  const step = 2 * limit / 2 ** 32;
  for (let i = 0; i < bits.length; i++) values[i] = bits[i]! * step - limit;
  return values;
}

/** Intervals of the table below, as the leading bits of a random number. */
const TABLE_BITS = 12;

let table: Float64Array | undefined;

/**
 * Turns random bits in place into normal numbers cut off at two sigma, by the inverse of their distribution
 * function. Interpolating it in a table is exact to 5e-6 sigma.
 */
function cutNormal(bits: Uint32Array<ArrayBuffer>, sigma: number): Float32Array {
  table ??= cutNormalTable();
  const points = table.map((x) => x * sigma);
  const values = new Float32Array(bits.buffer);
  const shift = 32 - TABLE_BITS;
  const step = 1 / 2 ** shift;
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]!;
    const interval = word >>> shift;
    const low = points[interval]!;
    values[i] = low + (word & (2 ** shift - 1)) * step * (points[interval + 1]! - low);
  }
  return values;
}

/** x(p), p = 0 ... 1, by Runge-Kutta steps from x(1/2) = 0 along x' = MASS exp(x² / 2). */
function cutNormalTable(): Float64Array {
  const half = 2 ** (TABLE_BITS - 1);
  const points = new Float64Array(2 * half + 1);
  const slope = (x: number) => MASS * Math.exp(x * x / 2);
  const h = 1 / (2 * half);
  for (let i = half; i < 2 * half; i++) {
    const x = points[i]!;
    const k1 = slope(x);
    const k2 = slope(x + h / 2 * k1);
    const k3 = slope(x + h / 2 * k2);
    const k4 = slope(x + h * k3);
    points[i + 1] = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    points[2 * half - i - 1] = -points[i + 1]!;
  }
  return points;
}
