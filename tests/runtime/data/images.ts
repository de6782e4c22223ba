/** Small image files for tests, made by other means than the decoders that read them. @module */
import { crc32, deflateSync } from "node:zlib";

/** A PNG file of rows as they stand in the file: bytes, unfiltered. */
export interface PngContent {
  readonly width: number;
  /** 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha. */
  readonly colourType: number;
  /** Bits of a value. */
  readonly depth: number;
  readonly rows: readonly (readonly number[])[];
  /** Red, green, blue of each index. */
  readonly palette?: readonly number[];
  /** Alpha of each index. */
  readonly transparency?: readonly number[];
}

/** The bytes of a PNG file (https://www.w3.org/TR/png-3/). */
export function png({ width, colourType, depth, rows, palette, transparency }: PngContent): Uint8Array {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, rows.length);
  header.set([depth, colourType, 0, 0, 0], 8);
  const raw = Uint8Array.from(rows.flatMap((row) => [0, ...row]));
  return Uint8Array.from([
    ...[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
    ...chunk("IHDR", header),
    ...palette ? chunk("PLTE", Uint8Array.from(palette)) : [],
    ...transparency ? chunk("tRNS", Uint8Array.from(transparency)) : [],
    ...chunk("IDAT", deflateSync(raw)),
    ...chunk("IEND", new Uint8Array(0)),
  ]);
}

function chunk(type: string, data: Uint8Array): number[] {
  const body = [...new TextEncoder().encode(type), ...data];
  const frame = new DataView(new ArrayBuffer(8));
  frame.setUint32(0, data.length);
  frame.setUint32(4, crc32(Uint8Array.from(body)));
  const [length, sum] = [new Uint8Array(frame.buffer, 0, 4), new Uint8Array(frame.buffer, 4, 4)];
  return [...length, ...body, ...sum];
}

/** A 2 x 2 PNG of one colour, 0 to 255. */
export function plainPng(red: number, green: number, blue: number): Uint8Array {
  const row = [red, green, blue, red, green, blue];
  return png({ width: 2, colourType: 2, depth: 8, rows: [row, row] });
}

/** A colourful JPEG, 8 wide and 6 high, with halved colours (4:2:0), written by Pillow 12 at quality 60. */
export const JPEG: Uint8Array<ArrayBuffer> = bytes(
  "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdB" +
    "RkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P" +
    "T09PT09PT09PT09PT0//wAARCAAGAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAeEAABAwQDAAAAAAAA" +
    "AAAAAAAAERMxAQIEBhIUgf/EABUBAQEAAAAAAAAAAAAAAAAAAAMG/8QAGxEAAQUBAQAAAAAAAAAAAAAAAQADBAUiAhT/2gAM" +
    "AwEAAhEDEQA/ALsLWMPr0sasc5q4tYSEj0AE3dyHRL60U1PMf8o0v//Z",
);

/** Rows 0 and 2 of {@linkcode JPEG} as Pillow decodes them: red, green, blue. */
export const JPEG_ROWS: Readonly<Record<0 | 2, readonly number[]>> = {
  0: [
    ...[0, 11, 207, 15, 14, 193, 39, 7, 153, 97, 31, 139],
    ...[134, 30, 93, 146, 6, 35, 191, 16, 21, 209, 18, 10],
  ],
  2: [
    ...[25, 97, 205, 39, 98, 188, 100, 131, 188, 215, 212, 231],
    ...[254, 209, 186, 209, 129, 70, 215, 100, 17, 235, 105, 7],
  ],
};

/** A JPEG in printers' colours (CMYK). */
export const CMYK_JPEG: Uint8Array<ArrayBuffer> = bytes(
  "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZM" +
    "TlJTUjI+WmFaUGBKUVJP/8AAFAgAAgACBEMRAE0RAFkRAEsRAP/EABUAAQEAAAAAAAAAAAAAAAAAAAYH/8QAHBAAAgICAwAA" +
    "AAAAAAAAAAAAAAMBAjNyE1OS/9oADgRDAE0AWQBLAAA/AAicNNYBfAnqX5gduzX2kpx//9k=",
);

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
