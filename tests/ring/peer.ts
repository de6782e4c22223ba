/** A worker that plays one side of a ring; the test, or another one, plays the other. @module */
import { AbortFlag } from "../../ring/abort.ts";
import { type RingChannel, type RingCounters, RingReceiver, RingSender } from "../../ring/ring.ts";
import { draws, fill, isFilled, messageOf, sleep } from "./messages.ts";

/** What a peer does. */
export interface PeerTask {
  readonly side: "send" | "receive";
  readonly channel: RingChannel;
  readonly abort: SharedArrayBuffer;
  /** Messages, from number `first` on. */
  readonly first?: number;
  readonly count: number;
  /** Milliseconds to sleep before the first. */
  readonly delayMs?: number;
  /** Sleeps now and then, drawn from this seed. */
  readonly pauseSeed?: number;
  /** Receiving: holds up to as many messages as there are slots and releases them in any order. */
  readonly shuffle?: boolean;
}

/** What a peer answers with, after the word that it has started. */
export interface PeerResult {
  readonly counters?: RingCounters;
  readonly error?: { readonly name: string; readonly message: string; readonly by?: number };
}

function send(task: PeerTask, abort: AbortFlag, pause: () => void): RingCounters {
  const sender = new RingSender(task.channel, abort);
  started(task);
  for (let n = task.first ?? 0; n < (task.first ?? 0) + task.count; n++) {
    pause();
    sender.send(messageOf(n, task.channel.slotBytes), (payload) => fill(n, payload));
  }
  return sender.counters;
}

function receive(task: PeerTask, abort: AbortFlag, pause: () => void): RingCounters {
  const receiver = new RingReceiver(task.channel, abort);
  const held: { n: number; sequence: number; payload: Uint8Array }[] = [];
  const random = draws(task.pauseSeed ?? 1);
  const giveBack = () => {
    const [message] = held.splice(random() % held.length, 1);
    // Looked at as late as this: nobody may write to a slot that is held.
    if (!isFilled(message!.n, message!.payload)) {
      throw new Error(`Message ${message!.n} is not as it was sent`);
    }
    receiver.release(message!.sequence);
  };
  started(task);
  for (let n = task.first ?? 0; n < (task.first ?? 0) + task.count; n++) {
    pause();
    const expected = messageOf(n, task.channel.slotBytes);
    const { sequence, payload, shape } = receiver.receive(expected);
    if (shape[0] !== expected.shape[0]) throw new Error(`Message ${n} has shape [${shape}]`);
    held.push({ n, sequence, payload });
    while (held.length > (task.shuffle ? random() % task.channel.capacity : 0)) giveBack();
  }
  while (held.length > 0) giveBack();
  return receiver.counters;
}

function started({ delayMs = 0 }: PeerTask): void {
  self.postMessage("started");
  sleep(delayMs);
}

self.onmessage = ({ data: task }: MessageEvent<PeerTask>) => {
  const random = draws(task.pauseSeed ?? 0);
  const pause = () => {
    if (task.pauseSeed !== undefined && random() % 400 === 0) sleep(random() % 3);
  };
  let result: PeerResult;
  try {
    const run = task.side === "send" ? send : receive;
    result = { counters: run(task, new AbortFlag(task.abort), pause) };
  } catch (error) {
    const { name, message, by } = error as Error & { by?: number };
    result = { error: { name, message, ...(by === undefined ? {} : { by }) } };
  }
  self.postMessage(result);
};
