/** Tests of the ring between threads: waits, aborts, stalls, and two workers under stress. @module */
import assert from "node:assert/strict";
import { AbortFlag } from "../../ring/abort.ts";
import { createRing, type RingCounters, RingReceiver, RingSender } from "../../ring/ring.ts";
import { waitUntil } from "../../ring/wait.ts";
import { fill, isFilled, messageOf } from "./messages.ts";
import type { PeerTask } from "./peer.ts";
import { type Peer, startPeer } from "./start_peer.ts";

const SLOT = 256;

function open(capacity: number, options: { period?: number; slotBytes?: number } = {}) {
  const { period, slotBytes = SLOT } = options;
  const made = createRing({ capacity, slotBytes, name: "test" });
  const channel = period === undefined ? made : { ...made, period };
  const abort = new AbortFlag();
  const start = (side: PeerTask["side"], count: number, more: Partial<PeerTask> = {}): Peer =>
    startPeer({ side, channel, abort: abort.shared, count, ...more });
  return {
    channel,
    abort,
    start,
    sender: new RingSender(channel, abort),
    receiver: new RingReceiver(channel, abort),
  };
}

/** One wait, of nearly all the time since. */
function waitedSince(begin: number, { waits, waitMs }: Readonly<RingCounters>): void {
  const elapsed = performance.now() - begin;
  assert.equal(waits, 1);
  assert.ok(waitMs > 30 && waitMs > 0.8 * elapsed && waitMs <= elapsed, `${waitMs} of ${elapsed} ms`);
}

Deno.test("a receiver waits for a message, and counts the wait", async () => {
  const { start, receiver } = open(2);
  using peer = start("send", 2, { delayMs: 200 });
  await peer.started;
  const begin = performance.now();
  const { payload } = receiver.receive(messageOf(0, SLOT));
  waitedSince(begin, receiver.counters);
  assert.ok(isFilled(0, payload));
  await peer.result;
  receiver.receive(messageOf(1, SLOT));
  assert.equal(receiver.counters.waits, 1);
});

Deno.test("a sender waits for room until a slot is released, and counts the wait", async () => {
  const { start, sender } = open(2);
  for (const n of [0, 1]) sender.send(messageOf(n, SLOT), (payload) => fill(n, payload));
  assert.equal(sender.counters.waits, 0);
  using peer = start("receive", 3, { delayMs: 200 });
  await peer.started;
  const begin = performance.now();
  sender.send(messageOf(2, SLOT), (payload) => fill(2, payload));
  waitedSince(begin, sender.counters);
  assert.equal((await peer.result).counters?.messages, 3);
});

Deno.test("a ring that is full holds its sender until the last message is released", async () => {
  const { start, receiver } = open(2);
  using peer = start("send", 3);
  await peer.started;
  const held = [0, 1].map((n) => receiver.receive(messageOf(n, SLOT)));
  receiver.release(held[1]!.sequence); // the older one is held: no room yet
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(receiver.pending, 0);
  assert.ok(isFilled(0, held[0]!.payload));
  receiver.release(held[0]!.sequence);
  assert.ok(isFilled(2, receiver.receive(messageOf(2, SLOT)).payload));
  assert.equal((await peer.result).counters?.waits, 1);
});

/** What a worker answers, if it does in so many milliseconds. */
async function within<T>(ms: number, result: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`No answer after ${ms} ms`)), ms);
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

for (const side of ["send", "receive"] as const) {
  Deno.test(`an abort ends a wait to ${side} within a second, with the worker that failed`, async () => {
    const { abort, start } = open(1);
    using peer = start(side, 2); // a second message has no room, or never comes
    await peer.started;
    await new Promise((resolve) => setTimeout(resolve, 60));
    const raised = performance.now();
    assert.ok(abort.raise(3));
    const { error } = await within(5000, peer.result);
    assert.deepEqual(error, { name: "AbortedError", message: "Stopped because worker 3 failed", by: 3 });
    assert.ok(performance.now() - raised < 1000);
  });
}

Deno.test("a ring works again after an aborted run", async () => {
  const { abort, start, sender, receiver } = open(2);
  using failed = start("send", 5);
  await failed.started;
  receiver.receive(messageOf(0, SLOT));
  abort.raise(0);
  assert.equal((await failed.result).error?.name, "AbortedError");
  assert.throws(() => {
    for (let n = 1;; n++) receiver.receive(messageOf(n, SLOT));
  }, { name: "AbortedError", by: 0 });
  abort.clear();
  receiver.reset();
  assert.equal(sender.free, 2);
  using peer = start("send", 5, { first: 100 });
  await peer.started;
  for (let n = 100; n < 105; n++) {
    const { payload, sequence } = receiver.receive(messageOf(n, SLOT));
    assert.ok(isFilled(n, payload));
    receiver.release(sequence);
  }
  assert.equal((await peer.result).counters?.messages, 5);
});

Deno.test("the abort flag keeps the worker that failed first", () => {
  const flag = new AbortFlag();
  assert.equal(flag.raisedBy, -1);
  flag.check();
  assert.ok(flag.raise(0));
  const other = new AbortFlag(flag.shared);
  assert.ok(!other.raise(1));
  assert.equal(other.raisedBy, 0);
  assert.throws(() => other.check(), { name: "AbortedError", by: 0 });
  other.clear();
  flag.check();
  assert.ok(other.raise(2));
  assert.equal(flag.raisedBy, 2);
});

Deno.test("a wait that stalls says once who waits, and goes on", async () => {
  const { channel, start, abort } = open(1);
  const cells = new Int32Array(channel.memory.buffer);
  const lines: string[] = [];
  using peer = start("send", 1, { delayMs: 200 });
  await peer.started;
  const options = {
    abort,
    describe: () => "A waits for B",
    report: (line: string) => lines.push(line),
    stallMs: 20,
  };
  assert.ok(waitUntil(cells, 0, (head) => head === 1, options) > 100);
  assert.deepEqual(lines, ["A waits for B for 0.02 s"]);
  assert.equal(waitUntil(cells, 0, (head) => head === 1, options), 0);
  assert.equal(lines.length, 1);
});

Deno.test("a wait looks as often as it is told to before it sleeps", () => {
  const { wait } = Atomics;
  let looks = 0;
  let sleeps = 0;
  Atomics.wait = () => {
    sleeps++;
    return "not-equal";
  };
  try {
    const cells = new Int32Array(new SharedArrayBuffer(4));
    const options = { abort: new AbortFlag(), describe: () => "", spins: 10 };
    waitUntil(cells, 0, () => ++looks > 5, options);
    assert.equal(sleeps, 0);
    looks = 0;
    waitUntil(cells, 0, () => ++looks > 20, options);
    assert.equal(sleeps, 20 - 10 - 1); // it looks once before, and sleeps once a look after
  } finally {
    Atomics.wait = wait;
  }
});

Deno.test("a wait that does not stall says nothing", async () => {
  const { channel, start, abort } = open(1);
  const lines: string[] = [];
  using peer = start("send", 1, { delayMs: 70 });
  await peer.started;
  const options = { abort, describe: () => "", report: (line: string) => lines.push(line) };
  waitUntil(new Int32Array(channel.memory.buffer), 0, (head) => head === 1, options);
  assert.deepEqual(lines, []);
});

Deno.test("a ring whose peer stalls for a minute names itself, step, micro-batch and tensor", async () => {
  const key = { step: 4, microBatch: 2, tensor: 1 };
  const stalled = async (side: PeerTask["side"], wait: (ring: ReturnType<typeof open>) => void) => {
    const ring = open(1);
    using peer = ring.start(side, 1, { delayMs: 150 });
    await peer.started;
    const { now } = performance;
    const { error } = console;
    const lines: string[] = [];
    let leap = 0;
    performance.now = () => now.call(performance) + (leap += 30_001);
    console.error = (line: string) => lines.push(line);
    try {
      wait(ring);
    } finally {
      performance.now = now;
      console.error = error;
    }
    return lines;
  };
  const receive = await stalled("send", ({ receiver }) => {
    try {
      receiver.receive(key);
    } catch { /* it sends another message */ }
  });
  assert.deepEqual(receive, ['Still waiting for ring "test" (step 4, micro-batch 2, tensor 1) for 60 s']);
  const send = await stalled("receive", ({ sender }) => {
    sender.send(messageOf(0, SLOT), (payload) => fill(0, payload));
    sender.send({ ...key, dtype: "bool", shape: [1] }, () => {});
  });
  assert.deepEqual(send, [
    'Still waiting for room in ring "test" (step 4, micro-batch 2, tensor 1) for 60 s',
  ]);
});

Deno.test("two workers exchange 20,000 messages of random sizes, with pauses, at any capacity", async () => {
  const run = async (capacity: number, count: number, slotBytes: number) => {
    const { start } = open(capacity, { period: 2 * capacity, slotBytes }); // counters wrap all the time
    const first = 1000 * capacity;
    using receiver = start("receive", count, { first, pauseSeed: capacity, shuffle: capacity > 1 });
    using sender = start("send", count, { first, pauseSeed: 100 + capacity });
    const [received, sent] = await Promise.all([receiver.result, sender.result]);
    assert.deepEqual([received.error, sent.error], [undefined, undefined]);
    assert.equal(received.counters?.messages, count);
    assert.equal(sent.counters?.bytes, received.counters?.bytes);
    assert.ok(sent.counters!.bytes > count * slotBytes / 3);
    assert.ok(sent.counters!.waits > 0 && received.counters!.waits > 0, "each side waited for the other");
  };
  await Promise.all([run(1, 4_000, 512), run(3, 12_000, 1024)]);
  await run(8, 4_000, 4096);
});
