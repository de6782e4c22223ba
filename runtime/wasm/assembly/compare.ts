/** Comparisons, choices and extremes of floats, value by value. Truth values are bytes, 0 or 1. @module */

/** What is computed; `kernels/simd/compare.ts` numbers them alike. */
export namespace Comparison {
  export const EQUAL: i32 = 0;
  export const NOT_EQUAL: i32 = 1;
  export const GREATER: i32 = 2;
  export const GREATER_EQUAL: i32 = 3;
  export const LESS: i32 = 4;
  export const LESS_EQUAL: i32 = 5;
}

/** Compares `length` values. @param aStep bytes from one value to the next: 4, or 0 if there is but one */
export function compare(op: i32, a: usize, aStep: usize, b: usize, bStep: usize, length: i32, to: usize): void {
  const ones = i8x16.splat(1);
  let i = 0;
  for (; i + 16 <= length; i += 16) {
    const m0 = compare4(op, four(a, aStep), four(b, bStep));
    const m1 = compare4(op, four(a + (aStep << 2), aStep), four(b + (bStep << 2), bStep));
    const m2 = compare4(op, four(a + (aStep << 3), aStep), four(b + (bStep << 3), bStep));
    const m3 = compare4(op, four(a + aStep * 12, aStep), four(b + bStep * 12, bStep));
    const low = i16x8.narrow_i32x4_s(m0, m1), high = i16x8.narrow_i32x4_s(m2, m3);
    v128.store(to, v128.and(i8x16.narrow_i16x8_s(low, high), ones));
    a += aStep << 4;
    b += bStep << 4;
    to += 16;
  }
  for (; i < length; i++) {
    const mask = compare4(op, v128.load32_splat(a), v128.load32_splat(b));
    store<u8>(to, <u8> (i32x4.extract_lane(mask, 0) & 1));
    a += aStep;
    b += bStep;
    to++;
  }
}

// @ts-ignore: decorator
@inline
function four(from: usize, step: usize): v128 {
  return step ? v128.load(from) : v128.load32_splat(from);
}

// @ts-ignore: decorator
@inline
function compare4(op: i32, a: v128, b: v128): v128 {
  switch (op) {
    case Comparison.EQUAL:
      return f32x4.eq(a, b);
    case Comparison.NOT_EQUAL:
      return f32x4.ne(a, b);
    case Comparison.GREATER:
      return f32x4.gt(a, b);
    case Comparison.GREATER_EQUAL:
      return f32x4.ge(a, b);
    case Comparison.LESS:
      return f32x4.lt(a, b);
    default:
      return f32x4.le(a, b);
  }
}

/** The larger of each two values, or the smaller; not a number if one of them is none. */
export function extreme(
  largest: bool,
  a: usize,
  aStep: usize,
  b: usize,
  bStep: usize,
  length: i32,
  to: usize,
): void {
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const x = four(a, aStep), y = four(b, bStep);
    v128.store(to, largest ? f32x4.max(x, y) : f32x4.min(x, y));
    a += aStep << 2;
    b += bStep << 2;
    to += 16;
  }
  for (; i < length; i++) {
    const x = load<f32>(a), y = load<f32>(b);
    store<f32>(to, largest ? max(x, y) : min(x, y));
    a += aStep;
    b += bStep;
    to += 4;
  }
}

/** Values of four bytes: `a` where the condition is true, else `b`. */
export function select(condition: usize, a: usize, b: usize, length: i32, to: usize): void {
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const mask = i32x4.ne(bytes4(condition), i32x4.splat(0));
    v128.store(to, v128.bitselect(v128.load(a), v128.load(b), mask));
    condition += 4;
    a += 16;
    b += 16;
    to += 16;
  }
  for (; i < length; i++) {
    store<u32>(to, load<u8>(condition) ? load<u32>(a) : load<u32>(b));
    condition++;
    a += 4;
    b += 4;
    to += 4;
  }
}

/** Truth values as floats, 0 or 1. */
export function truthToFloat(from: usize, length: i32, to: usize): void {
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    v128.store(to, f32x4.convert_i32x4_s(bytes4(from)));
    from += 4;
    to += 16;
  }
  for (; i < length; i++) {
    store<f32>(to, <f32> load<u8>(from));
    from++;
    to += 4;
  }
}

/** Four bytes as integers. */
// @ts-ignore: decorator
@inline
function bytes4(from: usize): v128 {
  return i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(from)));
}
