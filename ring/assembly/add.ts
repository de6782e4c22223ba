/** Adds up what members of a group contribute. @module */

/** `sum[i] += part[i]` for `length` float32 values; both addresses are aligned to 64 bytes. */
export function add(sum: usize, part: usize, length: i32): void {
  const end = sum + (<usize> length << 2);
  const blocks = sum + (<usize> (length & ~15) << 2);
  while (sum < blocks) {
    const a = f32x4.add(v128.load(sum), v128.load(part));
    const b = f32x4.add(v128.load(sum, 16), v128.load(part, 16));
    const c = f32x4.add(v128.load(sum, 32), v128.load(part, 32));
    const d = f32x4.add(v128.load(sum, 48), v128.load(part, 48));
    v128.store(sum, a);
    v128.store(sum, b, 16);
    v128.store(sum, c, 32);
    v128.store(sum, d, 48);
    sum += 64;
    part += 64;
  }
  while (sum < end) {
    store<f32>(sum, load<f32>(sum) + load<f32>(part));
    sum += 4;
    part += 4;
  }
}
