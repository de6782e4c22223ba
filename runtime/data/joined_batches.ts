/** Several batches of a source as one, which make one update of the weights. @module */
import { BYTES_PER_ELEMENT, sizeOf } from "../../ring/dtype.ts";
import { type BatchSource, checkAlike, type HostBatch, type HostTensor } from "./batch_source.ts";

/**
 * Joins each `count` batches of an epoch that follow one another; those at its end may be fewer.
 *
 * @param source one whose batches stay valid when others are asked for
 * @throws {RangeError} from an epoch with batches of several kinds
 */
export function joinBatches(source: BatchSource, count: number): BatchSource {
  const joined = Math.min(count, source.batches ?? count);
  if (joined === 1) return source;
  return {
    ...source,
    batchSize: joined * source.batchSize,
    joined,
    batches: source.batches && Math.ceil(source.batches / joined),
    async *epoch(index) {
      let parts: HostBatch[] = [];
      for await (const batch of source.epoch(index)) {
        checkAlike(batch, source);
        parts.push(batch);
        if (parts.length < joined) continue;
        yield join(parts);
        parts = [];
      }
      if (parts.length > 0) yield join(parts);
    },
  };
}

function join(parts: readonly HostBatch[]): HostBatch {
  const [first] = parts;
  const sizes = parts.map(({ size }) => size);
  const tensors = (of: (batch: HostBatch) => readonly HostTensor[]) =>
    of(first!).map((_, i) => joinRows(parts.map((part) => of(part)[i]!), sizes));
  return {
    size: sizes.reduce((sum, size) => sum + size, 0),
    inputs: tensors(({ inputs }) => inputs),
    targets: tensors(({ targets }) => targets),
  };
}

/** One tensor of all parts, one below the other. */
function joinRows(parts: readonly HostTensor[], sizes: readonly number[]): HostTensor {
  const { spec } = parts[0]!;
  const rowBytes = sizeOf(spec.shape) * BYTES_PER_ELEMENT[spec.dtype];
  return {
    spec,
    copyRows(first, count, target) {
      let begin = 0; // of the part
      parts.forEach((part, i) => {
        const end = begin + sizes[i]!;
        const from = Math.max(first, begin);
        const to = Math.min(first + count, end);
        if (from < to) {
          const room = target.subarray((from - first) * rowBytes, (to - first) * rowBytes);
          part.copyRows(from - begin, to - from, room);
        }
        begin = end;
      });
    },
  };
}
