/**
 * A worker and the calls to it. The only file that knows comlink: its pending calls never settle when a worker
 * dies, so each is raced against the worker's own error.
 * @module
 */
import { Comlink } from "../../deps.ts";
import { describePlace, type FailurePlace, portable, StageError } from "../errors.ts";
import type { Reply, WorkerApi } from "../protocol.ts";

/** The other end of a worker. */
export class WorkerLink {
  readonly #worker: Worker;
  readonly #remote: Comlink.Remote<WorkerApi>;
  readonly #died: Promise<never>;
  #end!: (reason: Error) => void;

  /** @param onDeath called once, should the worker end by an error of its own */
  constructor(readonly place: Pick<FailurePlace, "stage" | "replica" | "device">, onDeath: () => void) {
    this.#worker = new Worker(new URL("../worker/worker.ts", import.meta.url), {
      type: "module",
      name: `stagger ${describePlace(place)}`,
    });
    this.#remote = Comlink.wrap<WorkerApi>(this.#worker as unknown as Comlink.Endpoint);
    this.#died = new Promise((_, reject) => {
      this.#end = reject;
      const fail = (message: string) => {
        onDeath();
        const at = { ...place, step: -1, action: "worker", microBatch: -1 };
        reject(new StageError(portable(new Error(message), at, false)));
      };
      this.#worker.addEventListener("error", (event) => {
        event.preventDefault();
        fail(event.message);
      });
      this.#worker.addEventListener("messageerror", () => fail("a message could not be read"));
    });
    this.#died.catch(() => {}); // told to whoever calls next
  }

  /**
   * Calls the worker.
   *
   * @throws {StageError} if it failed or died
   */
  async call<K extends keyof WorkerApi>(
    method: K,
    ...args: Parameters<WorkerApi[K]>
  ): Promise<Awaited<ReturnType<WorkerApi[K]>> extends Reply<infer T> ? T : never> {
    const reply = await this.ask(method, ...args) as Reply<never>;
    if (!reply.ok) throw new StageError(reply.failure);
    return reply.value;
  }

  /** As `call`, with failures as answers: only death is thrown. */
  async ask<K extends keyof WorkerApi>(
    method: K,
    ...args: Parameters<WorkerApi[K]>
  ): Promise<Awaited<ReturnType<WorkerApi[K]>>> {
    const remote = this.#remote[method] as unknown as (...args: unknown[]) => Promise<unknown>;
    return await Promise.race([remote(...args), this.#died]) as Awaited<ReturnType<WorkerApi[K]>>;
  }

  /** Ends the worker, whatever it does; calls that wait for it fail. */
  terminate(): void {
    this.#end(new Error(`${describePlace(this.place)} on ${this.place.device} was ended`));
    this.#remote[Comlink.releaseProxy]();
    this.#worker.terminate();
  }
}

/** Offers `api` to the coordinator; called once, in a worker. */
export function serve(api: WorkerApi): void {
  Comlink.expose(api, self as unknown as Comlink.Endpoint);
}

/** Moves array buffers with a reply instead of copying them. */
export function transfer<T>(value: T, buffers: ArrayBuffer[]): T {
  return Comlink.transfer(value as object, buffers) as T;
}
