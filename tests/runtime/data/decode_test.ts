import assert from "node:assert/strict";
import { decodeImage, holdsEnd, imageFormat } from "../../../runtime/data/decode.ts";
import { CMYK_JPEG, JPEG, JPEG_ROWS, plainPng, png, type PngContent } from "./images.ts";

/** As it is before the JPEG decoder is loaded. */
const LOCATION = globalThis.location;

async function decodePng(content: PngContent) {
  const { data, ...layout } = await decodeImage(png(content));
  return { ...layout, data: [...data] };
}

Deno.test("decodeImage() reads a JPEG as Pillow does", async () => {
  const { height, width, channels, stride, white, data } = await decodeImage(JPEG);
  assert.deepEqual({ height, width, channels, stride, white }, {
    ...{ height: 6, width: 8, channels: 3, stride: 4, white: 255 },
  });
  const row = (y: number) => [...data.subarray(y * 32, (y + 1) * 32)].filter((_, i) => i % 4 < 3);
  assert.deepEqual(row(0), JPEG_ROWS[0]);
  assert.deepEqual(row(2), JPEG_ROWS[2]);
});

Deno.test("decodeImage() reads colour PNGs, with and without alpha", async () => {
  assert.deepEqual(await decodePng({ width: 2, colourType: 2, depth: 8, rows: [[1, 2, 3, 4, 5, 6]] }), {
    ...{ height: 1, width: 2, channels: 3, stride: 3, white: 255, data: [1, 2, 3, 4, 5, 6] },
  });
  assert.deepEqual(await decodePng({ width: 1, colourType: 6, depth: 8, rows: [[1, 2, 3, 0]] }), {
    ...{ height: 1, width: 1, channels: 3, stride: 4, white: 255, data: [1, 2, 3, 0] },
  });
});

Deno.test("decodeImage() reads grey PNGs of every depth", async () => {
  const layout = { height: 2, channels: 1, stride: 1 };
  const bits = { width: 9, colourType: 0, depth: 1, rows: [[0b10110001, 0b10000000], [0, 0b00000000]] };
  assert.deepEqual(await decodePng(bits), {
    ...{ ...layout, width: 9, white: 1, data: [1, 0, 1, 1, 0, 0, 0, 1, 1, ...new Array(9).fill(0)] },
  });
  const quarters = { width: 3, colourType: 0, depth: 2, rows: [[0b00011000], [0b11111100]] };
  assert.deepEqual(await decodePng(quarters), { ...layout, width: 3, white: 3, data: [0, 1, 2, 3, 3, 3] });
  const nibbles = { width: 3, colourType: 0, depth: 4, rows: [[0x0f, 0x70], [0x12, 0x30]] };
  assert.deepEqual(await decodePng(nibbles), { ...layout, width: 3, white: 15, data: [0, 15, 7, 1, 2, 3] });
  const bytes = { width: 1, colourType: 0, depth: 8, rows: [[200], [7]] };
  assert.deepEqual(await decodePng(bytes), { ...layout, width: 1, white: 255, data: [200, 7] });
  const words = { width: 1, colourType: 0, depth: 16, rows: [[0x12, 0x34], [0xff, 0xff]] };
  assert.deepEqual(await decodePng(words), { ...layout, width: 1, white: 65535, data: [0x1234, 0xffff] });
  const alpha = { width: 1, colourType: 4, depth: 8, rows: [[200, 0], [7, 255]] };
  assert.deepEqual(await decodePng(alpha), {
    ...layout,
    stride: 2,
    width: 1,
    white: 255,
    data: [200, 0, 7, 255],
  });
});

Deno.test("decodeImage() reads palette PNGs as their colours, transparent or not", async () => {
  const palette = [10, 11, 12, 20, 21, 22, 30, 31, 32];
  const expected = [30, 31, 32, 10, 11, 12, 20, 21, 22];
  for (const transparency of [undefined, [0, 128]]) {
    const bytes = { width: 3, colourType: 3, depth: 8, rows: [[2, 0, 1]], palette, transparency };
    const { data, stride, channels } = await decodePng(bytes);
    assert.deepEqual({ data, stride, channels }, { data: expected, stride: 3, channels: 3 });
    const packed = await decodePng({ ...bytes, depth: 2, rows: [[0b10000100]] });
    assert.deepEqual(packed.data, expected);
  }
});

Deno.test("decodeImage() rejects files that are damaged or of another kind", async () => {
  const good = plainPng(1, 2, 3);
  const flipped = Uint8Array.from(good, (byte, i) => i === 50 ? byte ^ 1 : byte);
  await assert.rejects(decodeImage(flipped));
  await assert.rejects(decodeImage(good.slice(0, 40)), (error: Error) => !/:\s*$/.test(error.message));
  const cut = plainPng(64, 64, 3);
  await assert.rejects(
    decodeImage(cut.slice(0, cut.length - 60)),
    (error: Error) => !/:\s*$/.test(error.message),
  );
  await assert.rejects(decodeImage(JPEG.slice(0, JPEG.length - 20)), /Premature end of JPEG file/);
  await assert.rejects(decodeImage(JPEG.slice(0, 20)), /JPEG/);
  await assert.rejects(decodeImage(CMYK_JPEG), /found CMYK/);
  await assert.rejects(decodeImage(new TextEncoder().encode("GIF89a")), /Expected PNG or JPEG/);
  await assert.rejects(decodeImage(new Uint8Array(0)), /The file is empty/);
});

Deno.test("decodeImage() decodes on after hundreds of damaged JPEGs", async () => {
  // Each error loses some of the decoder's stack, which is not enough for 100 of them.
  for (let i = 0; i < 300; i++) await assert.rejects(decodeImage(JPEG.slice(0, 20)));
  assert.equal((await decodeImage(JPEG)).width, 8);
});

Deno.test("decodeImage() leaves no `location` behind, by which programs tell a browser", async () => {
  await assert.rejects(decodeImage(JPEG.slice(0, 20))); // so that the decoder is loaded anew
  await decodeImage(JPEG);
  assert.equal(globalThis.location, LOCATION);
});

Deno.test("imageFormat() and holdsEnd() tell formats and broken downloads", () => {
  assert.equal(imageFormat(JPEG.subarray(0, 64)), "jpeg");
  assert.equal(imageFormat(plainPng(0, 0, 0).subarray(0, 64)), "png");
  assert.equal(imageFormat(new Uint8Array(64)), undefined);
  assert.equal(imageFormat(new Uint8Array(0)), undefined);
  assert.ok(holdsEnd("jpeg", JPEG.subarray(-64)));
  assert.ok(!holdsEnd("jpeg", JPEG.subarray(-66, -2)));
  assert.ok(holdsEnd("png", plainPng(0, 0, 0).subarray(-20)));
  assert.ok(!holdsEnd("png", plainPng(0, 0, 0).subarray(-40, -12)));
});
