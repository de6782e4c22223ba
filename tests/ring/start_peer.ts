/** Starts workers that play one side of a ring, or a member of a group. @module */
import type { MemberResult, MemberTask } from "./member.ts";
import type { PeerResult, PeerTask } from "./peer.ts";

/** A worker at its task. */
export interface Peer<Result = PeerResult> extends Disposable {
  /** Resolves when the worker is about to send or receive its first message, or to begin its first sum. */
  readonly started: Promise<void>;
  readonly result: Promise<Result>;
}

/** Starts one side of a ring. Dispose it when the test is over. */
export function startPeer(task: PeerTask): Peer {
  return start("./peer.ts", task);
}

/** Starts a member of a group. Dispose it when the test is over. */
export function startMember(task: MemberTask): Peer<MemberResult> {
  return start("./member.ts", task);
}

function start<Result>(module: string, task: unknown): Peer<Result> {
  const worker = new Worker(new URL(module, import.meta.url), { type: "module" });
  const started = Promise.withResolvers<void>();
  const result = Promise.withResolvers<Result>();
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
