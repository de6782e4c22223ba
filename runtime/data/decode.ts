/**
 * PNG and JPEG files as pixels.
 *
 * - PNG: `fast-png`, typed JavaScript that reads every colour type, depth and interlacing, checks sums, and
 *   is part of the maintained `image-js`. It is as fast as `@jsquash/png`, which is WebAssembly.
 * - JPEG: the decoder of `@jsquash/jpeg`, MozJPEG as WebAssembly: its pixels are Pillow's to the bit,
 *   baseline and progressive. `jpeg-js`, the usual choice, takes four times as long, repeats colours over
 *   2 x 2 pixels where libjpeg interpolates (up to 33 of 255 apart), and was last released in 2022.
 *
 * Neither has an install script or a native addon, and both are loaded on first use.
 * @module
 */
import type { DecodedPng } from "npm:fast-png@8.0.0";

/** A decoded image. */
export interface Image {
  readonly height: number;
  readonly width: number;
  /** Colours: 1 (grey) or 3 (red, green, blue), the first of each pixel. */
  readonly channels: 1 | 3;
  /** Values of each pixel; those past the colours are alpha. */
  readonly stride: number;
  /** `[height, width, stride]`. */
  readonly data: Uint8Array | Uint8ClampedArray | Uint16Array;
  /** The value of white. */
  readonly white: number;
}

/** What a file's content says that it is. */
export type ImageFormat = "png" | "jpeg";

const SIGNATURES: Readonly<Record<ImageFormat, readonly number[]>> = {
  png: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
  jpeg: [0xff, 0xd8, 0xff],
};
/** What ends a file: a PNG's chunk IEND, a JPEG's marker "end of image". */
const ENDS: Readonly<Record<ImageFormat, readonly number[]>> = {
  png: [0x49, 0x45, 0x4e, 0x44],
  jpeg: [0xff, 0xd9],
};

/** The format of a file that starts with `head`; its name plays no part. */
export function imageFormat(head: Uint8Array): ImageFormat | undefined {
  const formats: ImageFormat[] = ["png", "jpeg"];
  return formats.find((format) => SIGNATURES[format].every((byte, i) => head[i] === byte));
}

/** Whether `tail`, a file's last bytes, hold the end of an image; a download that broke off has none. */
export function holdsEnd(format: ImageFormat, tail: Uint8Array): boolean {
  const end = ENDS[format];
  return tail.some((_, at) => end.every((byte, i) => tail[at + i] === byte));
}

/**
 * Decodes the content of a file. Alpha and colour profiles stay unused, and the orientation that a camera
 * noted is not applied, as in torchvision's `ImageFolder`.
 *
 * @throws {Error} if it is neither PNG nor JPEG, or damaged
 */
export async function decodeImage(bytes: Uint8Array): Promise<Image> {
  switch (imageFormat(bytes)) {
    case "png":
      return await decodePng(bytes);
    case "jpeg":
      return await decodeJpeg(bytes);
    default:
      throw new Error(
        bytes.length === 0 ? "The file is empty" : "Expected PNG or JPEG, found another format; convert it",
      );
  }
}

async function decodePng(bytes: Uint8Array): Promise<Image> {
  const { decode } = await import("npm:fast-png@8.0.0");
  let png: DecodedPng;
  try {
    png = decode(bytes, { checkCrc: true });
  } catch (error) {
    // fast-png leaves the place after its colon empty for data that end too soon.
    throw new Error((error as Error).message.replace(/:\s*$/, ": they are damaged or cut short"), {
      cause: error,
    });
  }
  const { height, width } = png;
  if (png.palette && png.channels === 1) {
    return { height, width, channels: 3, stride: 3, data: paint(png, png.palette), white: 255 };
  }
  const channels = png.channels < 3 ? 1 : 3;
  const data = png.depth < 8 ? unpack(png) : png.data;
  return { height, width, channels, stride: png.channels, data, white: 2 ** png.depth - 1 };
}

/** The colours that a palette's indices stand for. */
function paint(png: DecodedPng, palette: readonly (readonly number[])[]): Uint8Array {
  const indices = png.depth < 8 ? unpack(png) : png.data;
  const data = new Uint8Array(indices.length * 3);
  for (let i = 0; i < indices.length; i++) {
    const colour = palette[indices[i]!];
    if (!colour) throw new Error(`Expected a palette of more than ${indices[i]} colours`);
    for (let c = 0; c < 3; c++) data[3 * i + c] = colour[c]!;
  }
  return data;
}

/** One value a byte, from rows in which several share one, the first in the highest bits. */
function unpack({ height, width, depth, data }: DecodedPng): Uint8Array {
  const values = new Uint8Array(height * width);
  const rowBytes = Math.ceil(width * depth / 8);
  const mask = 2 ** depth - 1;
  for (let y = 0, out = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const bit = x * depth;
      values[out++] = data[y * rowBytes + (bit >> 3)]! >> (8 - depth - (bit & 7)) & mask;
    }
  }
  return values;
}

/** The part of MozJPEG's module that is used; `data` is `[height, width, 4]`. */
interface JpegCodec {
  decode(bytes: Uint8Array, turn: boolean): { height: number; width: number; data: Uint8ClampedArray } | null;
}

let jpegCodec: Promise<JpegCodec> | undefined;
/** What libjpeg has said since the last image. */
const remarks: string[] = [];

/** Remarks that mean lost pixels. Others are harmless and common, such as bytes between two markers. */
const LOSS = /premature end|bad Huffman code|instead of RST/i;

async function decodeJpeg(bytes: Uint8Array): Promise<Image> {
  const codec = await (jpegCodec ??= loadJpeg().catch((error) => {
    jpegCodec = undefined;
    throw error;
  }));
  remarks.length = 0;
  let image: ReturnType<JpegCodec["decode"]> = null;
  try {
    image = codec.decode(bytes, false);
  } catch (error) {
    jpegCodec = undefined; // libjpeg leaves by exit(), which loses part of its stack
    if (remarks.length === 0) remarks.push(error instanceof Error ? error.message : "unknown error");
  }
  if (!image || LOSS.test(remarks.join())) {
    const cmyk = remarks.some((remark) => remark.includes("Unsupported color conversion"));
    throw new Error(cmyk ? "Expected grey or RGB, found CMYK; convert it" : remarks.join("; "));
  }
  return { height: image.height, width: image.width, channels: 3, stride: 4, data: image.data, white: 255 };
}

async function loadJpeg(): Promise<JpegCodec> {
  const { default: create } = await import("npm:@jsquash/jpeg@1.6.0/codec/dec/mozjpeg_dec.js");
  const options = { noInitialRun: true, printErr: (line: string) => void remarks.push(line) };
  const location = globalThis.location;
  const codec = create(options) as Promise<unknown> as Promise<JpegCodec>;
  // It gives a program that has no location an empty one, which others would take for a browser's.
  if (globalThis.location !== location) Reflect.set(globalThis, "location", location);
  try {
    return await codec;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new Error(`Cannot load the JPEG decoder, which Deno reads from its cache: ${reason}`, { cause });
  }
}
