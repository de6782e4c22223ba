/**
 * Optimizers' updates in one pass over memory: by ops, each of their steps is a pass of its own. The rules are
 * those of `stages/optimizers.ts`. Nothing is updated in place: tensors may share what they hold.
 * @module
 */

/**
 * Gradient descent with momentum: `v = momentum * v + g`, `weight -= rate * v`, with `g = gradient + decay * weight`.
 *
 * @param velocity 0 for plain descent, which has none
 * @param nesterov `weight -= rate * (g + momentum * v)`
 */
export function momentumUpdate(
  weight: usize,
  gradient: usize,
  velocity: usize,
  length: i32,
  rate: f32,
  momentum: f32,
  nesterov: bool,
  decay: f32,
  newWeight: usize,
  newVelocity: usize,
): void {
  const end = weight + (<usize> length << 2);
  const vectors = weight + (<usize> (length & ~3) << 2);
  const rates = f32x4.splat(rate), momenta = f32x4.splat(momentum), decays = f32x4.splat(decay);
  while (weight < vectors) {
    const w = v128.load(weight);
    const g = f32x4.add(v128.load(gradient), f32x4.mul(w, decays));
    let step = g;
    if (velocity) {
      const v = f32x4.add(f32x4.mul(v128.load(velocity), momenta), g);
      v128.store(newVelocity, v);
      step = nesterov ? f32x4.add(g, f32x4.mul(v, momenta)) : v;
      velocity += 16;
      newVelocity += 16;
    }
    v128.store(newWeight, f32x4.sub(w, f32x4.mul(step, rates)));
    weight += 16;
    gradient += 16;
    newWeight += 16;
  }
  while (weight < end) {
    const w = load<f32>(weight);
    const g = load<f32>(gradient) + w * decay;
    let step = g;
    if (velocity) {
      const v = load<f32>(velocity) * momentum + g;
      store<f32>(newVelocity, v);
      step = nesterov ? g + v * momentum : v;
      velocity += 4;
      newVelocity += 4;
    }
    store<f32>(newWeight, w - step * rate);
    weight += 4;
    gradient += 4;
    newWeight += 4;
  }
}

/**
 * Adam: `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g^2`,
 * `weight = keep * weight - rate * (m / correction1) / (sqrt(v / correction2) + epsilon)`, with
 * `g = gradient + decay * weight`.
 *
 * @param keep below one for AdamW, whose decay is apart from the gradient
 */
export function adamUpdate(
  weight: usize,
  gradient: usize,
  first: usize,
  second: usize,
  length: i32,
  rate: f32,
  beta1: f32,
  rest1: f32,
  beta2: f32,
  rest2: f32,
  correction1: f32,
  correction2: f32,
  epsilon: f32,
  decay: f32,
  keep: f32,
  newWeight: usize,
  newFirst: usize,
  newSecond: usize,
): void {
  for (let i = 0; i < length; i += 4) {
    const whole = i + 4 <= length;
    const w = four(weight, length - i);
    const g = f32x4.add(four(gradient, length - i), f32x4.mul(w, f32x4.splat(decay)));
    const m = f32x4.add(
      f32x4.mul(four(first, length - i), f32x4.splat(beta1)),
      f32x4.mul(g, f32x4.splat(rest1)),
    );
    const v = f32x4.add(
      f32x4.mul(four(second, length - i), f32x4.splat(beta2)),
      f32x4.mul(f32x4.mul(g, g), f32x4.splat(rest2)),
    );
    const root = f32x4.sqrt(f32x4.div(v, f32x4.splat(correction2)));
    const step = f32x4.div(f32x4.div(m, f32x4.splat(correction1)), f32x4.add(root, f32x4.splat(epsilon)));
    const updated = f32x4.sub(f32x4.mul(w, f32x4.splat(keep)), f32x4.mul(step, f32x4.splat(rate)));
    if (whole) {
      v128.store(newFirst, m);
      v128.store(newSecond, v);
      v128.store(newWeight, updated);
    } else {
      storeUpTo3(newFirst, m, length - i);
      storeUpTo3(newSecond, v, length - i);
      storeUpTo3(newWeight, updated, length - i);
    }
    weight += 16;
    gradient += 16;
    first += 16;
    second += 16;
    newWeight += 16;
    newFirst += 16;
    newSecond += 16;
  }
}

/** Four values; those beyond the end are zeros. */
// @ts-ignore: decorator
@inline
function four(from: usize, left: i32): v128 {
  if (left >= 4) return v128.load(from);
  let values = v128.load32_zero(from);
  if (left > 1) values = f32x4.replace_lane(values, 1, load<f32>(from, 4));
  if (left > 2) values = f32x4.replace_lane(values, 2, load<f32>(from, 8));
  return values;
}

function storeUpTo3(to: usize, values: v128, count: i32): void {
  store<f32>(to, f32x4.extract_lane(values, 0));
  if (count > 1) store<f32>(to, f32x4.extract_lane(values, 1), 4);
  if (count > 2) store<f32>(to, f32x4.extract_lane(values, 2), 8);
}
