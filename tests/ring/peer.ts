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

const port = self as unknown as {
  onmessage: (event: MessageEvent<PeerTask>) => void;
  postMessage(message: "started" | PeerResult): void;
};

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
  const giveBack = (which: number) => {
    const [message] = held.splice(which, 1);
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
    const most = task.shuffle ? random() % task.channel.capacity : 0;
    while (held.length > most) giveBack(random() % held.length);
    // Slots go back in order: the oldest must, before the ring is full of messages released after it.
    if (held.length > 0 && n + 1 - held[0]!.n >= task.channel.capacity) giveBack(0);
  }
  while (held.length > 0) giveBack(random() % held.length);
  return receiver.counters;
}

function started({ delayMs = 0 }: PeerTask): void {
  port.postMessage("started");
  sleep(delayMs);
}

port.onmessage = ({ data: task }) => {
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
  port.postMessage(result);
};
