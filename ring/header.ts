/** What stands before each message's payload: enough to refuse one that was not expected. @module */
import { DTYPES, type TensorSpec } from "./dtype.ts";

/** Bytes a header takes; payloads behind it stay aligned to 64 bytes. */
export const HEADER_BYTES = 128;

/** Longest shape that fits a header. */
export const MAX_RANK = 24;

const INTS = HEADER_BYTES / 4;
const MAGIC = 0x57a663; // marks a slot that a sender has written
const DIMS = 7; // index of the first dimension

/** Where a message belongs. */
export interface MessageKey {
  /** Optimizer step, counted from 0 over the life of a trainer. */
  readonly step: number;
  /** Micro-batch within the step. */
  readonly microBatch: number;
  /** Index of the tensor among those that cross here. */
  readonly tensor: number;
}

/** A decoded header. */
export interface MessageHeader extends MessageKey, TensorSpec {
  /** Bytes of payload. */
  readonly byteLength: number;
}

/** Thrown when a message is not the one that its receiver expects. */
export class MessageError extends Error {
  override readonly name = "MessageError";
}

/** Writes `header` at the start of a slot. */
export function writeHeader(buffer: SharedArrayBuffer, offset: number, header: MessageHeader): void {
  const { shape } = header;
  if (shape.length > MAX_RANK) {
    throw new RangeError(
      `Cannot send a tensor of rank ${shape.length}: a ring carries up to rank ${MAX_RANK}`,
    );
  }
  const ints = new Int32Array(buffer, offset, INTS);
  ints[0] = MAGIC;
  ints[1] = header.step;
  ints[2] = header.microBatch;
  ints[3] = header.tensor;
  ints[4] = DTYPES.indexOf(header.dtype);
  ints[5] = header.byteLength;
  ints[6] = shape.length;
  for (let i = 0; i < shape.length; i++) ints[DIMS + i] = shape[i]!;
}

/** Reads the header at the start of a slot. @throws {MessageError} if no sender wrote one there */
export function readHeader(buffer: SharedArrayBuffer, offset: number): MessageHeader {
  const ints = new Int32Array(buffer, offset, INTS);
  const dtype = DTYPES[ints[4]!];
  const rank = ints[6]!;
  if (ints[0] !== MAGIC || dtype === undefined || rank < 0 || rank > MAX_RANK) {
    throw new MessageError("Found no message header where one is expected");
  }
  return {
    step: ints[1]!,
    microBatch: ints[2]!,
    tensor: ints[3]!,
    dtype,
    byteLength: ints[5]! >>> 0, // a slot may hold more than 2 GiB
    shape: Array.from(ints.subarray(DIMS, DIMS + rank)),
  };
}
