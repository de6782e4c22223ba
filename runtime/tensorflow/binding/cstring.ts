/** NUL-terminated strings for C, made once each. @module */

const encoder = new TextEncoder();
const cache = new Map<string, Uint8Array<ArrayBuffer>>();

/** `text` as a C string. The caller must not write to it. */
export function cstring(text: string): Uint8Array<ArrayBuffer> {
  let bytes = cache.get(text);
  if (bytes === undefined) {
    bytes = encoder.encode(text + "\0");
    cache.set(text, bytes);
  }
  return bytes;
}

/** A C string that is used once, such as the name of a graph's node. */
export function cstringOnce(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text + "\0");
}
