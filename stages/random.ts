/**
 * Counter-based random numbers: a function of seed, layer, step and sample, so that masks do not depend on the
 * partition, on micro-batches or on the device. The engines share keys and counters; TensorFlow's stateless op
 * and `philoxUniform` give the same numbers for them.
 *
 * Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011 (Philox4x32-10).
 * @module
 */

/** Where one sample's numbers begin. */
export interface RandomPosition {
  readonly seed: number;
  readonly layer: string;
  /** How often this layer has drawn in this forward. */
  readonly call: number;
  readonly step: number;
  readonly firstSample: number;
}

/** Numbers per counter value. */
const LANES = 4;

/** Counter values that `elements` numbers of one sample take: each sample begins on a counter of its own. */
export function blocksPerSample(elements: number): number {
  return Math.ceil(elements / LANES);
}

/** The 64-bit key of one layer's stream. */
export function streamKey({ seed, layer, call }: Pick<RandomPosition, "seed" | "layer" | "call">): bigint {
  return BigInt(hash(`${layer}#${call}`, seed)) << 32n | BigInt(hash(`${layer}#${call}`, ~seed));
}

/** The 128-bit counter, low half first, at which a micro-batch's numbers begin. */
export function streamCounter(blocks: number, { step, firstSample }: RandomPosition): [bigint, bigint] {
  return [BigInt(firstSample) * BigInt(blocks), BigInt(step)];
}

/** FNV-1a. The seed is mixed first: as it is, it would meet the first letter, and "b" be to 1 what "a" is to 2. */
function hash(text: string, seed: number): number {
  let h = mix(0x811c9dc5 ^ seed);
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return mix(h);
}

/** MurmurHash3's finalizer: spreads the bits of a 32-bit number over all of it. */
function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b) >>> 0;
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35) >>> 0;
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform numbers in [0, 1), float32, from a key and a counter. */
export function philoxUniform(key: bigint, counter: readonly [bigint, bigint], count: number): Float32Array {
  const out = new Float32Array(count);
  const bits = new Uint32Array(1);
  const float = new Float32Array(bits.buffer);
  const k = [Number(key & 0xffffffffn), Number(key >> 32n)] as const;
  let [low, high] = counter;
  for (let at = 0; at < count; at += LANES) {
    const block = philox(k, [
      Number(low & 0xffffffffn),
      Number(low >> 32n),
      Number(high & 0xffffffffn),
      Number(high >> 32n),
    ]);
    for (let lane = 0; lane < LANES && at + lane < count; lane++) {
      bits[0] = (block[lane]! & 0x7fffff) | 0x3f800000; // 23 random bits as the mantissa of a float in [1, 2)
      out[at + lane] = float[0]! - 1;
    }
    low = (low + 1n) & 0xffffffffffffffffn;
    if (low === 0n) high++;
  }
  return out;
}

type Block = [number, number, number, number];

function philox([key0, key1]: readonly [number, number], [c0, c1, c2, c3]: Block): Block {
  let [k0, k1] = [key0, key1];
  for (let round = 0; round < 10; round++) {
    const [high0, low0] = multiply(0xd2511f53, c0);
    const [high1, low1] = multiply(0xcd9e8d57, c2);
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + 0x9e3779b9) >>> 0;
    k1 = (k1 + 0xbb67ae85) >>> 0;
  }
  return [c0, c1, c2, c3];
}

/** The 64-bit product of two 32-bit numbers, as high and low halves. */
function multiply(a: number, b: number): [high: number, low: number] {
  const [a0, a1, b0, b1] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const mid = a1 * b0 + ((a0 * b0) >>> 16);
  const mid2 = a0 * b1 + (mid % 0x10000);
  const high = a1 * b1 + Math.floor(mid / 0x10000) + Math.floor(mid2 / 0x10000);
  return [high >>> 0, Math.imul(a, b) >>> 0];
}
