/** The little of Protocol Buffers' wire format that libtensorflow's C API asks for. @module */

const encoder = new TextEncoder();

/** A message's bytes. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Field `number` holding an integer or boolean. */
export function varintField(number: number, value: number | boolean): Bytes {
  return Uint8Array.from([...varint(number << 3), ...varint(Number(value))]);
}

/** Field `number` holding a double. */
export function doubleField(number: number, value: number): Bytes {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, value, true);
  return concat([Uint8Array.from(varint(number << 3 | 1)), bytes]);
}

/** Field `number` holding bytes, text or a message. */
export function bytesField(number: number, value: Uint8Array | string): Bytes {
  const bytes = typeof value === "string" ? encoder.encode(value) : value;
  return concat([Uint8Array.from([...varint(number << 3 | 2), ...varint(bytes.length)]), bytes]);
}

/** Joins fields into a message. */
export function concat(parts: readonly Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The fields of a message, in order: number, and an integer or bytes. */
export function* fields(message: Uint8Array): Generator<[number: number, value: bigint | Uint8Array]> {
  let at = 0;
  const integer = (): bigint => {
    let result = 0n;
    for (let shift = 0n;; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new RangeError("Message ends within a field");
      result |= BigInt(byte & 127) << shift;
      if (byte < 128) return result;
    }
  };
  while (at < message.length) {
    const key = Number(integer());
    const wire = key & 7;
    if (wire === 0) yield [key >> 3, integer()];
    else {
      const length = wire === 2 ? Number(integer()) : wire === 5 ? 4 : 8;
      yield [key >> 3, message.subarray(at, at + length)];
      at += length;
    }
  }
}

function varint(value: number): number[] {
  const out: number[] = [];
  while (value >= 128) {
    out.push((value % 128) | 128);
    value = Math.floor(value / 128);
  }
  out.push(value);
  return out;
}
