/**
 * Optimizers: what `compile` accepts, as plain data, and their update rules in TensorFlow.js ops. An engine may
 * replace a rule by fused ops of its own; these are the reference.
 * @module
 */
import { tf } from "../deps.ts";

/** Optimizers that Stagger knows. */
export type OptimizerName =
  | "sgd"
  | "momentum"
  | "adam"
  | "adamw"
  | "rmsprop"
  | "adagrad"
  | "adadelta"
  | "adamax";

/** An optimizer given as an object: for what tfjs's own lack, such as weight decay. */
export interface OptimizerConfig {
  /** Which one. */
  readonly name: OptimizerName;
  /** Step size. Default: tfjs-layers' for the name. */
  readonly learningRate?: number;
  /** `momentum`, `rmsprop`. */
  readonly momentum?: number;
  /** `momentum`: Nesterov's. */
  readonly nesterov?: boolean;
  /**
   * `adamw`: decoupled from the gradient (Loshchilov and Hutter, 2019). Others: added to the gradient, as
   * PyTorch does. Applies to every trained weight.
   */
  readonly weightDecay?: number;
  /** `adam`, `adamw`, `adamax`: decay of the first moment. Default: 0.9. */
  readonly beta1?: number;
  /** `adam`, `adamw`, `adamax`: decay of the second moment. Default: 0.999. */
  readonly beta2?: number;
  /** Keeps divisions finite. Default: 1e-7, `adamw` 1e-8. */
  readonly epsilon?: number;
  /** `rmsprop`: discounting factor of squared gradients. `adamax`: of the learning rate. */
  readonly decay?: number;
  /** `rmsprop`: centred on the mean gradient. */
  readonly centered?: boolean;
  /** `adadelta`. */
  readonly rho?: number;
  /** `adagrad`. */
  readonly initialAccumulatorValue?: number;
}

/** An optimizer with nothing left open. */
export type OptimizerSpec = Required<OptimizerConfig>;

/** What changes from step to step. */
export interface UpdateScalars {
  readonly learningRate: number;
  /** Updates done before this one. */
  readonly iteration: number;
}

/** How one weight is updated. */
export interface UpdateRule {
  /** Tensors of the weight's shape kept from step to step, with the value that they start from. */
  readonly slots: readonly { readonly name: string; readonly initial: number }[];
  /** The scalars that `apply` is given, for this step. */
  scalars(step: UpdateScalars): Record<string, number>;
  apply(
    weight: tf.Tensor,
    gradient: tf.Tensor,
    slots: readonly tf.Tensor[],
    scalars: Readonly<Record<string, tf.Tensor>>,
  ): { weight: tf.Tensor; slots: tf.Tensor[] };
}

const EPSILON = 1e-7; // tfjs-core's for float32

const DEFAULTS: OptimizerSpec = {
  name: "sgd",
  learningRate: 0.01,
  momentum: 0,
  nesterov: false,
  weightDecay: 0,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: EPSILON,
  decay: 0,
  centered: false,
  rho: 0.95,
  initialAccumulatorValue: 0.1,
};

/** Where an optimizer's defaults differ from those above: tfjs-layers' for its names, PyTorch's for `adamw`. */
const OWN_DEFAULTS: Record<OptimizerName, Partial<OptimizerSpec>> = {
  sgd: {},
  momentum: { momentum: 0.9 },
  adam: { learningRate: 0.001 },
  adamw: { learningRate: 0.001, weightDecay: 0.01, epsilon: 1e-8 },
  rmsprop: { learningRate: 0.001, decay: 0.9 },
  adagrad: {},
  adadelta: { learningRate: 1 },
  adamax: { learningRate: 0.002 },
};

const NAMES = Object.keys(OWN_DEFAULTS) as OptimizerName[];

/**
 * Reads an optimizer as `compile` takes it.
 *
 * @throws {TypeError} for an optimizer of another kind, {RangeError} for a value out of its range
 */
export function optimizerSpec(optimizer: string | tf.Optimizer | OptimizerConfig): OptimizerSpec {
  const config = typeof optimizer === "string"
    ? { name: optimizer.toLowerCase() }
    : isTfjs(optimizer)
    ? fromTfjs(optimizer)
    : optimizer;
  const name = config?.name as OptimizerName;
  if (!NAMES.includes(name)) {
    throw new TypeError(
      `Cannot use optimizer ${JSON.stringify(config?.name ?? optimizer)}: expected one of ${
        NAMES.join(", ")
      }, ` +
        `a tf.train optimizer, or { name, learningRate, ... }`,
    );
  }
  const known = new Set(Object.keys(DEFAULTS));
  for (const key of Object.keys(config)) {
    if (!known.has(key)) {
      throw new TypeError(
        `Cannot use option "${key}" of optimizer "${name}": expected some of ${
          [...known].slice(1).join(", ")
        }`,
      );
    }
  }
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
  const spec: OptimizerSpec = { ...DEFAULTS, ...OWN_DEFAULTS[name], ...given, name };
  const range = (key: keyof OptimizerSpec, ok: boolean, expected: string) => {
    if (!ok) {
      throw new RangeError(`Cannot use ${key} ${spec[key]} in optimizer "${name}": expected ${expected}`);
    }
  };
  range("learningRate", Number.isFinite(spec.learningRate) && spec.learningRate >= 0, "a number >= 0");
  for (const key of ["momentum", "beta1", "beta2", "rho"] as const) {
    range(
      key,
      spec[key] >= 0 && spec[key] < 1 || key === "rho" && spec[key] === 1,
      "a number from 0 to below 1",
    );
  }
  range("weightDecay", Number.isFinite(spec.weightDecay) && spec.weightDecay >= 0, "a number >= 0");
  range("epsilon", spec.epsilon >= 0, "a number >= 0");
  return spec;
}

/** `tf.Optimizer`'s own check reads a method of what it is given, of undefined too. */
function isTfjs(optimizer: unknown): optimizer is tf.Optimizer {
  return optimizer !== undefined && optimizer !== null && optimizer instanceof tf.Optimizer;
}

function fromTfjs(optimizer: tf.Optimizer): OptimizerConfig {
  const config = optimizer.getConfig() as Record<string, number | boolean>;
  const className = (optimizer.constructor as unknown as { className: string }).className;
  const { useNesterov, ...rest } = config;
  const name = className.toLowerCase() as OptimizerName;
  return { ...rest, ...(useNesterov === undefined ? {} : { nesterov: useNesterov as boolean }), name };
}

/** The learning rate that an optimizer object has now: callbacks may change it. */
export function currentLearningRate(
  optimizer: string | tf.Optimizer | OptimizerConfig,
  spec: OptimizerSpec,
): number {
  if (isTfjs(optimizer)) {
    return (optimizer as unknown as { learningRate?: number }).learningRate ?? spec.learningRate;
  }
  if (typeof optimizer === "object") return optimizer.learningRate ?? spec.learningRate;
  return spec.learningRate;
}

/** The update rule of an optimizer. */
export function updateRule(spec: OptimizerSpec): UpdateRule {
  const rule = plainRule(spec);
  if (spec.weightDecay === 0) return rule;
  return {
    ...rule,
    apply(weight, gradient, slots, s) {
      if (spec.name !== "adamw") {
        return rule.apply(weight, tf.add(gradient, tf.mul(weight, spec.weightDecay)), slots, s);
      }
      const kept = tf.sub(1, tf.mul(s["learningRate"]!, spec.weightDecay));
      return rule.apply(tf.mul(weight, kept), gradient, slots, s);
    },
  };
}

function plainRule(spec: OptimizerSpec): UpdateRule {
  const { momentum, beta1, beta2, epsilon, decay, rho } = spec;
  const learningRate = ({ learningRate }: UpdateScalars) => ({ learningRate });
  const zeros = (...names: string[]) => names.map((name) => ({ name, initial: 0 }));
  const mix = (old: tf.Tensor, value: tf.Tensor, keep: number) =>
    tf.add(tf.mul(old, keep), tf.mul(value, 1 - keep));
  switch (spec.name) {
    case "sgd":
      if (momentum > 0) return plainRule({ ...spec, name: "momentum" });
      return {
        slots: [],
        scalars: learningRate,
        apply: (weight, gradient, _slots, { learningRate }) => ({
          weight: tf.sub(weight, tf.mul(gradient, learningRate!)),
          slots: [],
        }),
      };
    case "momentum": // Sutskever et al., 2013; the form that PyTorch and TensorFlow share
      return {
        slots: zeros("momentum"),
        scalars: learningRate,
        apply(weight, gradient, [velocity], { learningRate }) {
          const v = tf.add(tf.mul(velocity!, momentum), gradient);
          const step = spec.nesterov ? tf.add(gradient, tf.mul(v, momentum)) : v;
          return { weight: tf.sub(weight, tf.mul(step, learningRate!)), slots: [v] };
        },
      };
    case "adam": // Kingma and Ba, 2015
    case "adamw":
      return {
        slots: zeros("m", "v"),
        scalars: ({ learningRate, iteration }) => ({
          learningRate,
          correction1: 1 - beta1 ** (iteration + 1),
          correction2: 1 - beta2 ** (iteration + 1),
        }),
        apply(weight, gradient, [m0, v0], { learningRate, correction1, correction2 }) {
          const m = mix(m0!, gradient, beta1);
          const v = mix(v0!, tf.square(gradient), beta2);
          const denominator = tf.add(tf.sqrt(tf.div(v, correction2!)), epsilon);
          const step = tf.div(tf.div(m, correction1!), denominator);
          return { weight: tf.sub(weight, tf.mul(step, learningRate!)), slots: [m, v] };
        },
      };
    case "adamax": // Kingma and Ba, 2015, section 7.1
      return {
        slots: zeros("m", "u"),
        scalars: ({ learningRate, iteration }) => ({
          learningRate: learningRate / (1 + iteration * decay) / (1 - beta1 ** (iteration + 1)),
        }),
        apply(weight, gradient, [m0, u0], { learningRate }) {
          const m = mix(m0!, gradient, beta1);
          const u = tf.maximum(tf.mul(u0!, beta2), tf.abs(gradient));
          const step = tf.div(m, tf.add(u, epsilon));
          return { weight: tf.sub(weight, tf.mul(step, learningRate!)), slots: [m, u] };
        },
      };
    case "rmsprop": // Tieleman and Hinton, 2012
      return {
        slots: zeros("rms", "momentum", ...(spec.centered ? ["mean"] : [])),
        scalars: learningRate,
        apply(weight, gradient, [rms0, velocity, mean0], { learningRate }) {
          const rms = mix(rms0!, tf.square(gradient), decay);
          const mean = spec.centered ? mix(mean0!, gradient, decay) : undefined;
          // tfjs-core subtracts epsilon where the gradient is centred: NaN for a weight that gets none.
          const variance = tf.add(mean ? tf.sub(rms, tf.square(mean)) : rms, epsilon);
          const step = tf.div(tf.mul(gradient, learningRate!), tf.sqrt(variance));
          const v = tf.add(tf.mul(velocity!, momentum), step);
          return { weight: tf.sub(weight, v), slots: mean ? [rms, v, mean] : [rms, v] };
        },
      };
    case "adagrad": // Duchi et al., 2011
      return {
        slots: [{ name: "accumulator", initial: spec.initialAccumulatorValue }],
        scalars: learningRate,
        apply(weight, gradient, [sum0], { learningRate }) {
          const sum = tf.add(sum0!, tf.square(gradient));
          const step = tf.div(gradient, tf.sqrt(tf.add(sum, EPSILON)));
          return { weight: tf.sub(weight, tf.mul(step, learningRate!)), slots: [sum] };
        },
      };
    case "adadelta": // Zeiler, 2012, with the order of tfjs-core
      return {
        slots: zeros("gradients", "updates"),
        scalars: learningRate,
        apply(weight, gradient, [g0, u0], { learningRate }) {
          const root = tf.div(tf.sqrt(tf.add(u0!, epsilon)), tf.sqrt(tf.add(g0!, epsilon)));
          const update = tf.mul(root, gradient);
          return {
            weight: tf.sub(weight, tf.mul(update, learningRate!)),
            slots: [mix(g0!, tf.square(gradient), rho), mix(u0!, tf.square(update), rho)],
          };
        },
      };
  }
}
