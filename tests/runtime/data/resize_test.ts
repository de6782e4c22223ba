import assert from "node:assert/strict";
import { tf } from "../../../deps.ts";
import { type Layout, Resizer, type Size } from "../../../runtime/data/resize.ts";
import { silenceBanner } from "../../../stages/tfjs.ts";
import { randomStream } from "../../../runtime/data/random.ts";

const size = (height: number, width: number): Size => ({ height, width });

function noise(length: number): Float32Array {
  const random = randomStream(0, length);
  return Float32Array.from({ length }, () => random.unit());
}

function resized(from: Size, to: Size, source: Float32Array | Uint8Array, layout: Layout, antialias = true) {
  const target = new Float32Array(to.height * to.width * layout.channels * (layout.repeat ?? 1));
  new Resizer(from, to, { antialias }).run(source, target, layout);
  return target;
}

function assertClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  assert.equal(actual.length, expected.length);
  for (let i = 0; i < actual.length; i++) {
    assert.ok(Math.abs(actual[i]! - expected[i]!) <= tolerance, `${i}: ${actual[i]}, not ${expected[i]}`);
  }
}

Deno.test("Resizer interpolates as TensorFlow does with half-pixel centres", async () => {
  silenceBanner();
  await tf.setBackend("cpu");
  const cases: [Size, Size, number][] = [
    [size(28, 28), size(128, 128), 1],
    [size(5, 7), size(11, 20), 3],
    [size(9, 13), size(4, 5), 3],
    [size(6, 5), size(3, 12), 1],
    [size(1, 1), size(3, 2), 3],
    [size(4, 4), size(4, 4), 1],
    [size(8, 3), size(1, 1), 1],
  ];
  for (const [from, to, channels] of cases) {
    const source = noise(from.height * from.width * channels);
    const expected = tf.tidy(() => {
      const image = tf.tensor3d(source, [from.height, from.width, channels]);
      return tf.image.resizeBilinear(image, [to.height, to.width], false, true).dataSync();
    });
    assertClose(resized(from, to, source, { channels }, false), expected, 1e-6);
    const grows = to.height >= from.height && to.width >= from.width;
    if (grows) assertClose(resized(from, to, source, { channels }, true), expected, 1e-6);
  }
});

Deno.test("Resizer shrinks as Pillow does", () => {
  const source = Float32Array.from([
    ...[0, 1, 4, 9, 5, 3, 3],
    ...[7, 0, 6, 3, 2, 3, 6],
    ...[3, 10, 8, 8, 10, 3, 9],
    ...[10, 9, 10, 2, 7, 3, 1],
    ...[6, 8, 1, 7, 4, 3, 4],
  ]);
  // Image.resize(..., Image.BILINEAR) of Pillow 12, mode "F".
  assertClose(
    resized(size(5, 7), size(2, 3), source, { channels: 1 }),
    [4, 5.41176, 4.32143, 7.53571, 5.79412, 4.10714],
    1e-5,
  );
  assertClose(
    resized(size(5, 7), size(2, 9), source, { channels: 1 }).subarray(0, 9),
    [4, 3.33333, 4.33333, 6, 6, 5.22222, 3.88889, 3.83333, 5.5],
    1e-5,
  );
});

Deno.test("Resizer keeps the mean of an image that it shrinks by a whole number", () => {
  const source = new Float32Array(64 * 64);
  for (let i = 0; i < source.length; i += 8) source[i] = 1; // thin stripes, which the two nearest pixels miss
  const small = resized(size(64, 64), size(8, 8), source, { channels: 1 });
  assertClose(small.subarray(9, 15), new Float32Array(6).fill(1 / 8), 1e-6);
});

Deno.test("Resizer leaves an image of the wanted size as it is", () => {
  const source = noise(6 * 5 * 3);
  assert.deepEqual(resized(size(6, 5), size(6, 5), source, { channels: 3 }), source);
});

Deno.test("Resizer steps over alpha, scales values and repeats channels", () => {
  const rgba = Uint8Array.from([10, 20, 30, 255, 50, 60, 70, 0, 90, 80, 70, 9]);
  assertClose(
    resized(size(1, 3), size(1, 3), rgba, { channels: 3, stride: 4, scale: 0.5 }),
    [5, 10, 15, 25, 30, 35, 45, 40, 35],
    0,
  );
  assertClose(
    resized(size(1, 3), size(1, 3), rgba, { channels: 1, stride: 4, repeat: 3 }),
    [10, 10, 10, 50, 50, 50, 90, 90, 90],
    0,
  );
});

Deno.test("Resizer resizes one image after another without a trace of the first", () => {
  const resizer = new Resizer(size(4, 4), size(7, 7));
  const [first, second] = [new Float32Array(49 * 3), new Float32Array(49)];
  resizer.run(noise(48), first, { channels: 3 });
  resizer.run(noise(16), second, { channels: 1 });
  assert.deepEqual(second, resized(size(4, 4), size(7, 7), noise(16), { channels: 1 }));
});

Deno.test("Resizer rejects sizes and arrays that do not fit", () => {
  assert.throws(() => new Resizer(size(0, 4), size(2, 2)), /Cannot resize 0 x 4 pixels to 2 x 2/);
  assert.throws(() => new Resizer(size(4, 4), size(2, 1.5)), RangeError);
  const resizer = new Resizer(size(2, 2), size(2, 2));
  const four = new Float32Array(4);
  assert.throws(() => resizer.run(new Float32Array(3), four, { channels: 1 }), /a source of 3 values/);
  assert.throws(() => resizer.run(four, new Float32Array(3), { channels: 1 }), /a target of 3 values/);
});
