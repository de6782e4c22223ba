/**
 * Batch normalization over rows `[rows, channels]`, both ways, in as few passes over memory as the sums allow.
 *
 * Source: Ioffe and Szegedy, "Batch Normalization", 2015, section 3.
 * @module
 */

/** Rows whose sums are taken apart from the others': long sums of small numbers lose digits. */
const CHUNK: i32 = 32;

/**
 * Forward: `y = (x - mean) * inverse * scale + offset`, with the biased variance.
 *
 * @param inverse receives one over the standard deviation
 * @param partial room for `channels` values
 */
export function batchNorm(
  x: usize,
  rows: i32,
  channels: i32,
  scale: usize,
  offset: usize,
  epsilon: f32,
  y: usize,
  mean: usize,
  variance: usize,
  inverse: usize,
  partial: usize,
): void {
  const bytes = <usize> channels << 2;
  memory.fill(mean, 0, bytes);
  memory.fill(variance, 0, bytes);
  for (let row = 0; row < rows; row += CHUNK) {
    memory.fill(partial, 0, bytes);
    const count = min(CHUNK, rows - row);
    for (let i = 0; i < count; i++) addTo(partial, x + <usize> (row + i) * bytes, bytes);
    addTo(mean, partial, bytes);
  }
  const share: f32 = 1 / <f32> rows;
  scaleBy(mean, share, bytes);
  for (let row = 0; row < rows; row += CHUNK) {
    memory.fill(partial, 0, bytes);
    const count = min(CHUNK, rows - row);
    for (let i = 0; i < count; i++) addSquares(partial, x + <usize> (row + i) * bytes, mean, bytes);
    addTo(variance, partial, bytes);
  }
  scaleBy(variance, share, bytes);
  for (let at: usize = 0; at < bytes; at += 4) {
    const one = <f32> 1 / sqrt<f32>(load<f32>(variance + at) + epsilon);
    store<f32>(inverse + at, one);
    store<f32>(partial + at, one * load<f32>(scale + at));
  }
  const vectors = bytes & ~15;
  for (let row = 0; row < rows; row++) {
    for (let at: usize = 0; at < vectors; at += 16) {
      const centered = f32x4.sub(v128.load(x + at), v128.load(mean + at));
      v128.store(y + at, f32x4.relaxed_madd(centered, v128.load(partial + at), v128.load(offset + at)));
    }
    for (let at = vectors; at < bytes; at += 4) {
      const centered = load<f32>(x + at) - load<f32>(mean + at);
      store<f32>(y + at, centered * load<f32>(partial + at) + load<f32>(offset + at));
    }
    x += bytes;
    y += bytes;
  }
}

/**
 * Backward: gradients of `x`, scale and offset.
 *
 * @param partial room for `2 * channels` values
 */
export function batchNormGradient(
  dy: usize,
  x: usize,
  rows: i32,
  channels: i32,
  scale: usize,
  mean: usize,
  inverse: usize,
  dx: usize,
  dScale: usize,
  dOffset: usize,
  partial: usize,
): void {
  const bytes = <usize> channels << 2;
  const products = partial + bytes;
  memory.fill(dScale, 0, bytes);
  memory.fill(dOffset, 0, bytes);
  for (let row = 0; row < rows; row += CHUNK) {
    memory.fill(partial, 0, bytes << 1);
    const count = min(CHUNK, rows - row);
    for (let i = 0; i < count; i++) {
      const at = <usize> (row + i) * bytes;
      addTo(partial, dy + at, bytes);
      addProducts(products, dy + at, x + at, mean, bytes);
    }
    addTo(dOffset, partial, bytes);
    addTo(dScale, products, bytes);
  }
  // dx = factor * (dy - share * dOffset - centered * inverse * share * dScale)
  const share: f32 = 1 / <f32> rows;
  for (let at: usize = 0; at < bytes; at += 4) {
    const one = load<f32>(inverse + at);
    const sum = load<f32>(dScale + at) * one;
    store<f32>(dScale + at, sum);
    const factor = one * load<f32>(scale + at);
    store<f32>(partial + at, factor);
    store<f32>(products + at, -sum * one * share * factor);
  }
  const vectors = bytes & ~15;
  for (let row = 0; row < rows; row++) {
    for (let at: usize = 0; at < vectors; at += 16) {
      const centered = f32x4.sub(v128.load(x + at), v128.load(mean + at));
      const own = f32x4.sub(v128.load(dy + at), f32x4.mul(v128.load(dOffset + at), f32x4.splat(share)));
      const gradient = f32x4.mul(own, v128.load(partial + at));
      v128.store(dx + at, f32x4.relaxed_madd(centered, v128.load(products + at), gradient));
    }
    for (let at = vectors; at < bytes; at += 4) {
      const centered = load<f32>(x + at) - load<f32>(mean + at);
      const own = load<f32>(dy + at) - load<f32>(dOffset + at) * share;
      store<f32>(dx + at, own * load<f32>(partial + at) + centered * load<f32>(products + at));
    }
    x += bytes;
    dy += bytes;
    dx += bytes;
  }
}

/** `sums += values` */
function addTo(sums: usize, values: usize, bytes: usize): void {
  const vectors = bytes & ~15;
  for (let at: usize = 0; at < vectors; at += 16) {
    v128.store(sums + at, f32x4.add(v128.load(sums + at), v128.load(values + at)));
  }
  for (let at = vectors; at < bytes; at += 4) {
    store<f32>(sums + at, load<f32>(sums + at) + load<f32>(values + at));
  }
}

/** `sums += (values - mean)^2` */
function addSquares(sums: usize, values: usize, mean: usize, bytes: usize): void {
  const vectors = bytes & ~15;
  for (let at: usize = 0; at < vectors; at += 16) {
    const centered = f32x4.sub(v128.load(values + at), v128.load(mean + at));
    v128.store(sums + at, f32x4.relaxed_madd(centered, centered, v128.load(sums + at)));
  }
  for (let at = vectors; at < bytes; at += 4) {
    const centered = load<f32>(values + at) - load<f32>(mean + at);
    store<f32>(sums + at, load<f32>(sums + at) + centered * centered);
  }
}

/** `sums += dy * (x - mean)` */
function addProducts(sums: usize, dy: usize, x: usize, mean: usize, bytes: usize): void {
  const vectors = bytes & ~15;
  for (let at: usize = 0; at < vectors; at += 16) {
    const centered = f32x4.sub(v128.load(x + at), v128.load(mean + at));
    v128.store(sums + at, f32x4.relaxed_madd(centered, v128.load(dy + at), v128.load(sums + at)));
  }
  for (let at = vectors; at < bytes; at += 4) {
    const centered = load<f32>(x + at) - load<f32>(mean + at);
    store<f32>(sums + at, load<f32>(sums + at) + load<f32>(dy + at) * centered);
  }
}

function scaleBy(values: usize, factor: f32, bytes: usize): void {
  for (let at: usize = 0; at < bytes; at += 4) store<f32>(values + at, load<f32>(values + at) * factor);
}
