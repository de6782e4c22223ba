/** Starts workers that play one side of a ring. @module */
import type { PeerResult, PeerTask } from "./peer.ts";

/** A worker at its task. */
export interface Peer extends Disposable {
  /** Resolves when the worker is about to send or receive its first message. */
  readonly started: Promise<void>;
  readonly result: Promise<PeerResult>;
}

/** Starts one. Dispose it when the test is over. */
export function startPeer(task: PeerTask): Peer {
  const worker = new Worker(new URL("./peer.ts", import.meta.url), { type: "module" });
  const started = Promise.withResolvers<void>();
  const result = Promise.withResolvers<PeerResult>();
  worker.onmessage = ({ data }) => data === "started" ? started.resolve() : result.resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    started.reject(new Error(event.message));
    result.reject(new Error(event.message));
  };
  worker.postMessage(task);
  return {
    started: started.promise,
    result: result.promise,
    [Symbol.dispose]: () => worker.terminate(),
  };
}
