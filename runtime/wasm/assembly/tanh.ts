/** The hyperbolic tangent. @module */

/**
 * `y = tanh(x)`, `length` values: a quotient of polynomials, as in Eigen's `generic_fast_tanh_float`, within a few
 * units in the last place.
 */
export function tanh(x: usize, length: i32, y: usize): void {
  const vectors = y + (<usize> (length & ~3) << 2);
  const end = y + (<usize> length << 2);
  while (y < vectors) {
    v128.store(y, tanh4(v128.load(x)));
    x += 16;
    y += 16;
  }
  while (y < end) {
    store<f32>(y, f32x4.extract_lane(tanh4(v128.load32_splat(x)), 0));
    x += 4;
    y += 4;
  }
}

// @ts-ignore: decorator
@inline
function tanh4(x: v128): v128 {
  // Beyond this, tanh rounds to one. Not a number stays so: the comparisons are false.
  const limit = f32x4.splat(7.90531110763549805), lowest = f32x4.splat(-7.90531110763549805);
  let c = v128.bitselect(limit, x, f32x4.gt(x, limit));
  c = v128.bitselect(lowest, c, f32x4.lt(x, lowest));
  const square = f32x4.mul(c, c);
  let p = f32x4.splat(-2.76076847742355e-16);
  p = f32x4.relaxed_madd(p, square, f32x4.splat(2.00018790482477e-13));
  p = f32x4.relaxed_madd(p, square, f32x4.splat(-8.60467152213735e-11));
  p = f32x4.relaxed_madd(p, square, f32x4.splat(5.12229709037114e-08));
  p = f32x4.relaxed_madd(p, square, f32x4.splat(1.48572235717979e-05));
  p = f32x4.relaxed_madd(p, square, f32x4.splat(6.37261928875436e-04));
  p = f32x4.relaxed_madd(p, square, f32x4.splat(4.89352455891786e-03));
  let q = f32x4.splat(1.19825839466702e-06);
  q = f32x4.relaxed_madd(q, square, f32x4.splat(1.18534705686654e-04));
  q = f32x4.relaxed_madd(q, square, f32x4.splat(2.26843463243900e-03));
  q = f32x4.relaxed_madd(q, square, f32x4.splat(4.89352518554385e-03));
  const tangent = f32x4.div(f32x4.mul(c, p), q);
  return v128.bitselect(x, tangent, f32x4.lt(f32x4.abs(x), f32x4.splat(0.0004)));
}
