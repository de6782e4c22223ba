/** Batches of one epoch, each handed to the stages while the one before it runs. @module */
import type { HostBatch } from "../data/batch_source.ts";
import type { ReadyLane } from "../coordinator/ready_lane.ts";

/** Feeds a lane. The stages never hold more than the batch that runs and the next one. */
export class FeedAhead {
  #following: Promise<number | undefined>;

  /** Asks for the first batch at once. */
  constructor(readonly batches: AsyncGenerator<HostBatch, void, void>, readonly lane: ReadyLane) {
    this.#following = this.#feed();
  }

  /** Samples in the next batch, which is fed then; undefined after the last. @throws what the data threw */
  next(): Promise<number | undefined> {
    return this.#following;
  }

  /** Makes and feeds the batch after that; called when a step was begun, it works while the devices do. */
  advance(): void {
    this.#following = this.#feed();
    this.#following.catch(() => {}); // an error waits until the present step is done
  }

  /** Ends the epoch. */
  async close(): Promise<void> {
    await this.#following.catch(() => {}); // nothing may be fed from now on
    await this.batches.return();
  }

  async #feed(): Promise<number | undefined> {
    const { done, value } = await this.batches.next();
    if (done) return undefined;
    this.lane.feed(value);
    return value.size;
  }
}
