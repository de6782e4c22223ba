/** The workers of a run, one per stage of each replica: started, asked, recovered after a failure, ended. @module */
import { AbortFlag } from "../../ring/abort.ts";
import { StageError } from "../errors.ts";
import type { ResolvedOptions } from "../options.ts";
import type { Reply, StepCommand, StepReport, WorkerEngine } from "../protocol.ts";
import { WorkerLink } from "./worker_link.ts";

/** Milliseconds to wait, after a failure, for the other stages to stop. */
const SETTLE_MS = 500;

/** Workers: the stages of the first replica, then those of the next. */
export class StageWorkers {
  /** Raised by the first stage that fails; the others' waits end by it. */
  readonly abort = new AbortFlag();
  #links: WorkerLink[] = [];
  #settling: Promise<unknown> = Promise.resolve();
  #broken = false;
  #closed = false;

  /** Whether workers are up, and none has died. */
  get running(): boolean {
    return this.#links.length > 0 && !this.#broken;
  }

  /** Whether a worker died. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Starts a worker on each device. @returns what computes, with its version; lines that a person should read */
  async start(
    engine: WorkerEngine,
    { devices, replicas, modules }: ResolvedOptions,
  ): Promise<{ engine: string; notices: string[] }> {
    this.#refuseClosed();
    const stages = devices.length / replicas;
    const places = devices.map(({ name }, worker) => ({
      stage: worker % stages,
      replica: replicas > 1 ? Math.floor(worker / stages) : undefined,
      device: name,
    }));
    this.#links = places.map((place, worker) =>
      new WorkerLink(place, () => {
        this.#broken = true;
        this.abort.raise(worker);
      })
    );
    this.#broken = false;
    this.abort.clear();
    const started = await this.all((link, worker) => {
      const { stage, replica } = places[worker]!;
      const device = devices[worker]!;
      return link.call("start", {
        worker,
        stage,
        replica,
        device,
        engine,
        modules,
        abort: this.abort.shared,
      });
    });
    const notices = new Set(started.flatMap(({ notice }) => notice ?? []));
    return { engine: started[0]!.engine, notices: [...notices] };
  }

  /** Asks every worker; throws the first failure. */
  async all<T>(f: (link: WorkerLink, worker: number) => Promise<T>): Promise<T[]> {
    await this.#settling;
    this.#refuseClosed();
    return await Promise.all(this.#links.map(f));
  }

  /** Asks every worker, whichever fail. */
  async each<T>(f: (link: WorkerLink, worker: number) => Promise<T>): Promise<PromiseSettledResult<T>[]> {
    await this.#settling;
    return await Promise.allSettled(this.#links.map(f));
  }

  /**
   * Runs one step on every stage.
   *
   * @param afterFailure called when the stages have stopped and dropped what was in flight
   * @throws {StageError} the first error that is not the echo of another's
   */
  async run(command: (worker: number) => StepCommand, afterFailure: () => void): Promise<StepReport[]> {
    await this.#settling;
    this.#refuseClosed();
    const pending = this.#links.map((link, worker) => link.ask("run", command(worker)));
    const settled = Promise.allSettled(pending);
    try {
      return await firstFailure(pending);
    } catch (error) {
      this.#settling = settled.then(() => this.#recover(afterFailure));
      await Promise.race([this.#settling, new Promise((done) => setTimeout(done, SETTLE_MS))]);
      throw error;
    }
  }

  /** Ends the workers for good: whoever waits for them, or asks them from now on, gets an error. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.stop();
  }

  /** Ends the workers. */
  async stop(): Promise<void> {
    const links = this.#links;
    this.#links = [];
    if (!this.#broken) await Promise.allSettled(links.map((link) => link.ask("dispose")));
    for (const link of links) link.terminate();
  }

  #refuseClosed(): void {
    if (this.#closed) throw new Error("Cannot use the stages: their workers were ended");
  }

  /** Makes the stages ready for another run. */
  async #recover(afterFailure: () => void): Promise<void> {
    if (this.#broken) return; // the next start begins anew
    this.abort.clear();
    await Promise.allSettled(this.#links.map((link) => link.ask("reset")));
    afterFailure();
  }
}

async function firstFailure(pending: readonly Promise<Reply<StepReport>>[]): Promise<StepReport[]> {
  let echo: StageError | undefined;
  const reports = await Promise.all(pending.map(async (reply) => {
    const answer = await reply;
    if (answer.ok) return answer.value;
    const error = new StageError(answer.failure);
    if (!answer.failure.aborted) throw error;
    echo = error;
  }));
  if (echo) throw echo;
  return reports as StepReport[];
}
