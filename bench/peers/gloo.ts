/** PyTorch's all_reduce over gloo, between as many processes as there are workers. @module */
import { PeerProcess } from "./peer_process.ts";

/** The processes, taken as one. */
export class GlooPeer implements Disposable {
  readonly #process: PeerProcess;

  private constructor(process: PeerProcess) {
    this.#process = process;
  }

  /** @throws {Error} if Python or torch is not there, with what it said */
  static async start(python: string, workers: number): Promise<GlooPeer> {
    return new GlooPeer(await PeerProcess.start(python, "./torch_allreduce.py", { workers }));
  }

  /** Seconds of one sum of as many bytes: the slowest process's mean over the repetitions. */
  async run(bytes: number, repetitions: number): Promise<number> {
    const answer = await this.#process.order(`${bytes} ${repetitions}`);
    return (answer as { seconds: number }).seconds;
  }

  [Symbol.dispose](): void {
    this.#process.stop();
  }
}
