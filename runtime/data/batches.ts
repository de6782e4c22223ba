/** Samples gathered into batches, the next ones while the caller works on the present one. @module */
import { setImmediate } from "node:timers/promises";
import { sizeOf } from "../../ring/dtype.ts";
import { epochLength, epochOrder, type Sharding } from "./epoch_order.ts";
import type { Samples } from "./samples.ts";

/** Samples of one optimizer step. */
export interface Batch {
  /** Number within the epoch, counted from 0. */
  readonly index: number;
  /** Samples in it. */
  readonly size: number;
  /** `[size, ...samples.input.shape]` */
  readonly inputs: Float32Array;
  /** `[size, ...samples.target.shape]` */
  readonly targets: Float32Array;
  /** Which samples these are, `[size]`. */
  readonly indices: Uint32Array;
}

/** Options of {@linkcode batches}. */
export interface BatchesOptions {
  /** Samples in a batch; the last one may have fewer. */
  readonly batchSize: number;
  /** Whether samples come in an order drawn from `seed` and `epoch`, or in their own. */
  readonly shuffle: boolean;
  /** Default 0. */
  readonly seed?: number;
  /** Default 0. Samples that are augmented are others in each. */
  readonly epoch?: number;
  /** Brings together what each replica takes; see `epochOrder`. */
  readonly sharding?: Sharding | undefined;
  /** Leave out a last batch that is smaller (default false). */
  readonly dropRemainder?: boolean;
  /** Batches to fill ahead of the one that the caller has (default 1). */
  readonly prefetch?: number;
  /** The first batch to make (default 0): where an interrupted epoch goes on. */
  readonly start?: number;
  /**
   * Fill the arrays of a batch anew once the next one is asked for (default false: each batch has its own).
   * Saves the memory and the time of new arrays to a caller that copies a batch away before it goes on.
   */
  readonly reuse?: boolean;
}

/** Milliseconds of reading after which others get their turn on this thread. */
const SLICE = 4;

/** How many batches an epoch has. */
export function batchCount(samples: number, batchSize: number, dropRemainder = false): number {
  return dropRemainder ? Math.floor(samples / batchSize) : Math.ceil(samples / batchSize);
}

/**
 * One epoch of batches, in order. The first is filled when it is asked for; from then on up to `prefetch`
 * more are filled one after another while the caller works, in slices of a few milliseconds, so that
 * messages from workers are not kept waiting.
 *
 * A sample that cannot be read throws when its batch is asked for, not before. A caller may stop early
 * (`break`, `return()`): filling stops at the next sample, and none is being read once the generator ended.
 *
 * @throws {RangeError} at once, if an option is out of its range or no batch would come out
 * @throws {Error} from the batch whose sample cannot be read, with its index; `cause` says why
 */
export function batches(samples: Samples, options: BatchesOptions): AsyncGenerator<Batch, void, void> {
  const { batchSize, dropRemainder = false, prefetch = 1, start = 0, seed = 0, epoch = 0 } = options;
  expectInteger("batchSize", batchSize, 1);
  expectInteger("prefetch", prefetch, 0);
  expectInteger("start", start, 0);
  const length = epochLength(samples.length, options.sharding);
  const count = batchCount(length, batchSize, dropRemainder);
  if (count === 0) {
    const remedy = length === 0 ? "give at least one sample" : "take smaller ones, or keep the remainder";
    throw new RangeError(`Cannot make batches of ${batchSize} from ${length} samples: ${remedy}`);
  }
  const order = epochOrder(samples.length, { ...options, seed }, epoch);
  return fillAhead(new Filler(samples, order, { ...options, epoch }), start, count, prefetch);
}

async function* fillAhead(
  filler: Filler,
  start: number,
  count: number,
  prefetch: number,
): AsyncGenerator<Batch, void, void> {
  const ahead: Promise<Batch>[] = [];
  let last: Promise<unknown> = Promise.resolve();
  try {
    for (let index = start, next = start; index < count; index++) {
      for (; next < count && next <= index + prefetch; next++) {
        const own = next;
        const batch = last.then(() => filler.fill(own, own > index));
        batch.catch(() => {}); // reaches the caller at its turn, or never if the caller stops before
        ahead.push(last = batch);
      }
      const batch = await ahead.shift()!;
      yield batch;
      filler.recycle(batch);
    }
  } finally {
    filler.stop();
    await last.catch(() => {});
  }
}

/** Reads the samples of one batch after another. */
class Filler {
  readonly #batchSize: number;
  readonly #epoch: number;
  readonly #reuse: boolean;
  readonly #inputSize: number;
  readonly #targetSize: number;
  readonly #free: { inputs: Float32Array; targets: Float32Array }[] = [];
  #stopped = false;
  #sliceEnd = 0;

  constructor(
    readonly samples: Samples,
    readonly order: Uint32Array,
    { batchSize, epoch = 0, reuse = false }: BatchesOptions,
  ) {
    this.#batchSize = batchSize;
    this.#epoch = epoch;
    this.#reuse = reuse;
    this.#inputSize = sizeOf(samples.input.shape);
    this.#targetSize = sizeOf(samples.target.shape);
  }

  /** @param ahead whether the caller has something else to do first */
  async fill(index: number, ahead: boolean): Promise<Batch> {
    if (ahead) await this.#letOthersRun();
    if (this.#stopped) throw new Error("Stopped filling batches: the caller wants no more");
    const indices = this.order.subarray(index * this.#batchSize, (index + 1) * this.#batchSize);
    const size = indices.length;
    const { inputs, targets } = this.#free.pop() ?? {
      inputs: new Float32Array(this.#batchSize * this.#inputSize),
      targets: new Float32Array(this.#batchSize * this.#targetSize),
    };
    for (let i = 0; i < size && !this.#stopped; i++) {
      await this.#read(
        indices[i]!,
        inputs.subarray(i * this.#inputSize, (i + 1) * this.#inputSize),
        targets.subarray(i * this.#targetSize, (i + 1) * this.#targetSize),
      );
      if (performance.now() > this.#sliceEnd) await this.#letOthersRun();
    }
    return {
      index,
      size,
      inputs: inputs.subarray(0, size * this.#inputSize),
      targets: targets.subarray(0, size * this.#targetSize),
      indices,
    };
  }

  /** Takes back the arrays of a batch that the caller is done with. */
  recycle({ inputs, targets }: Batch): void {
    if (!this.#reuse) return;
    this.#free.push({ inputs: new Float32Array(inputs.buffer), targets: new Float32Array(targets.buffer) });
  }

  /** Makes the batch that is being filled the last, and leaves it unfinished. */
  stop(): void {
    this.#stopped = true;
  }

  async #read(index: number, input: Float32Array, target: Float32Array): Promise<void> {
    try {
      await this.samples.read(index, input, target, this.#epoch);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`Cannot read sample ${index}: ${reason}`, { cause });
    }
  }

  async #letOthersRun(): Promise<void> {
    await setImmediate();
    this.#sliceEnd = performance.now() + SLICE;
  }
}

function expectInteger(name: string, value: number, least: number): void {
  if (!Number.isInteger(value) || value < least) {
    throw new RangeError(`Cannot make batches with ${name} ${value}: expected an integer from ${least}`);
  }
}
