/**
 * Uniform random numbers from a counter.
 *
 * Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: Philox-4x32 of ten rounds.
 * @module
 */

/**
 * Writes `count` numbers in [0, 1).
 *
 * @param low lower half of the counter, which goes up by one for each four numbers
 */
export function philoxUniform(to: usize, count: i32, key: u64, low: u64, high: u64): void {
  for (let at = 0; at < count; at += 4) {
    let c0 = <u32> low, c1 = <u32> (low >> 32), c2 = <u32> high, c3 = <u32> (high >> 32);
    let k0 = <u32> key, k1 = <u32> (key >> 32);
    for (let round = 0; round < 10; round++) {
      const a = <u64> 0xd2511f53 * <u64> c0, b = <u64> 0xcd9e8d57 * <u64> c2;
      c0 = <u32> (b >> 32) ^ c1 ^ k0;
      c1 = <u32> b;
      c2 = <u32> (a >> 32) ^ c3 ^ k1;
      c3 = <u32> a;
      k0 += 0x9e3779b9;
      k1 += 0xbb67ae85;
    }
    store<f32>(to, fraction(c0));
    if (at + 1 < count) store<f32>(to, fraction(c1), 4);
    if (at + 2 < count) store<f32>(to, fraction(c2), 8);
    if (at + 3 < count) store<f32>(to, fraction(c3), 12);
    to += 16;
    low++;
    if (low == 0) high++;
  }
}

/** 23 random bits as the mantissa of a number in [1, 2), less 1. */
// @ts-ignore: decorator
@inline
function fraction(bits: u32): f32 {
  return reinterpret<f32>((bits & 0x7fffff) | 0x3f800000) - 1;
}
