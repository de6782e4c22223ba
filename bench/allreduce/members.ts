/** The workers of one number of members. @module */
import { AbortFlag } from "../../ring/abort.ts";
import { type AlgorithmName, createGroup, type GroupChannel } from "../../ring/group_channel.ts";
import type { MemberAnswer, MemberOrder, MemberSetup } from "./member.ts";

/** Workers that sum and copy when they are told to. */
export class Members implements Disposable {
  readonly #workers: Worker[];
  readonly #abort: AbortFlag;

  private constructor(workers: Worker[], abort: AbortFlag) {
    this.#workers = workers;
    this.#abort = abort;
  }

  /**
   * Starts them, worker w bound to `cores[w % cores.length]`.
   *
   * @param length elements of the largest sum
   */
  static async start(size: number, length: number, cores: readonly number[]): Promise<Members> {
    const create = (algorithm: AlgorithmName, elements: number): GroupChannel =>
      createGroup({ size, lengths: [elements], algorithm, name: algorithm });
    const channels = { ring: create("ring", length), parameterServer: create("parameterServer", length) };
    const gate = create("ring", 1);
    const abort = new AbortFlag();
    const workers = Array.from(
      { length: size },
      () => new Worker(new URL("./member.ts", import.meta.url), { type: "module" }),
    );
    const members = new Members(workers, abort);
    try {
      await members.#tell((rank): MemberSetup => {
        return { channels, gate, abort: abort.shared, rank, core: cores[rank % cores.length]!, length };
      });
    } catch (error) {
      members[Symbol.dispose]();
      throw error;
    }
    return members;
  }

  /** Seconds of one repetition: the slowest worker's. */
  async run(order: MemberOrder): Promise<number> {
    const answers = await this.#tell(() => order);
    return Math.max(...answers.map(({ seconds }) => seconds!));
  }

  [Symbol.dispose](): void {
    for (const worker of this.#workers) worker.terminate();
  }

  #tell(message: (rank: number) => MemberSetup | MemberOrder): Promise<MemberAnswer[]> {
    return Promise.all(this.#workers.map((worker, rank) => {
      const { promise, resolve, reject } = Promise.withResolvers<MemberAnswer>();
      const fail = (reason: string) => {
        this.#abort.raise(rank); // the others must not wait for it
        reject(new Error(`Worker ${rank} of ${this.#workers.length} failed: ${reason}`));
      };
      worker.onmessage = ({ data }: MessageEvent<MemberAnswer>) =>
        data.error === undefined ? resolve(data) : fail(data.error);
      worker.onerror = (event) => {
        event.preventDefault();
        fail(event.message);
      };
      worker.postMessage(message(rank));
      return promise;
    }));
  }
}
