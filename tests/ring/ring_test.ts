/** Tests of the ring within one thread: what goes in comes out, and what it refuses. @module */
import assert from "node:assert/strict";
import { AbortFlag } from "../../ring/abort.ts";
import { type DType, DTYPES } from "../../ring/dtype.ts";
import { MAX_RANK, MessageError } from "../../ring/header.ts";
import { createRing, type Message, type RingChannel, RingReceiver, RingSender } from "../../ring/ring.ts";

const KEY = { step: 0, microBatch: 0, tensor: 0 };

function open(capacity: number, slotBytes: number, period?: number) {
  const made = createRing({ capacity, slotBytes, name: "test" });
  const channel: RingChannel = period === undefined ? made : { ...made, period };
  const abort = new AbortFlag();
  const sender = new RingSender(channel, abort);
  const receiver = new RingReceiver(channel, abort);
  const send = (number: number) =>
    sender.send({ ...KEY, step: number, shape: [1], dtype: "int32" }, ({ buffer, byteOffset }) => {
      new Int32Array(buffer, byteOffset, 1)[0] = number;
    });
  const receive = (number: number): Message => {
    const message = receiver.receive({ ...KEY, step: number });
    assert.equal(valueOf(message), number);
    return message;
  };
  return { channel, abort, sender, receiver, send, receive };
}

function valueOf({ payload }: Message): number {
  return new Int32Array(payload.buffer, payload.byteOffset, 1)[0]!;
}

Deno.test("a message carries every dtype, with its key, shape and bytes", () => {
  const { sender, receiver } = open(2, 1024);
  const values: Record<DType, Uint8Array> = {
    float32: new Uint8Array(new Float32Array([1.5, -0, NaN, Infinity, 1e-42, 3]).buffer),
    int32: new Uint8Array(new Int32Array([-1, 2 ** 31 - 1, -(2 ** 31), 0, 5, 6]).buffer),
    bool: new Uint8Array([1, 0, 0, 1, 1, 1]),
    complex64: new Uint8Array(new Float32Array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).buffer),
    string: new TextEncoder().encode("zwölf Sträuße"),
  };
  DTYPES.forEach((dtype, i) => {
    const key = { step: 2 ** 31 - 1 - i, microBatch: 7 + i, tensor: 3 * i };
    const bytes = values[dtype];
    const byteLength = dtype === "string" ? { byteLength: bytes.length } : {};
    sender.send({ ...key, dtype, shape: [2, 3], ...byteLength }, (payload) => {
      assert.equal(payload.length, bytes.length);
      payload.set(bytes);
    });
    const { payload, sequence, ...header } = receiver.receive({ ...key, dtype });
    assert.deepEqual(header, { ...key, dtype, shape: [2, 3], byteLength: bytes.length });
    assert.deepEqual([...payload], [...bytes]);
    receiver.release(sequence);
  });
});

Deno.test("a message carries every rank from 0 to 24, and empty tensors", () => {
  const { sender, receiver } = open(1, 64);
  const shapes = Array.from({ length: MAX_RANK + 1 }, (_, rank) => new Array(rank).fill(1).fill(2, 0, 3));
  for (const shape of [...shapes, [0], [3, 0, 2]]) {
    sender.send({ ...KEY, dtype: "float32", shape }, (payload) => payload.fill(shape.length));
    const message = receiver.receive(KEY);
    assert.deepEqual(message.shape, shape);
    assert.equal(message.payload.length, 4 * shape.reduce((a, b) => a * b, 1));
    assert.ok(message.payload.every((byte) => byte === shape.length));
    receiver.release(message.sequence);
  }
  assert.equal(shapes.length, 25);
});

Deno.test("send() refuses a tensor of rank 25, and the slot stays free", () => {
  const { sender, receiver, send, receive } = open(1, 64);
  assert.throws(
    () => sender.send({ ...KEY, dtype: "float32", shape: new Array(25).fill(1) }, () => {}),
    { name: "RangeError", message: /rank 25: a ring carries up to rank 24/ },
  );
  assert.equal(receiver.pending, 0);
  send(1);
  receive(1);
});

Deno.test("send() refuses a message larger than a slot, and takes one as large", () => {
  const { sender, receiver } = open(2, 100);
  const send = (shape: number[], extra: { byteLength?: number; dtype?: DType } = {}) =>
    sender.send({ ...KEY, dtype: "float32", shape, ...extra }, (payload) => payload.fill(9));
  assert.throws(() => send([26]), {
    name: "RangeError",
    message: 'Cannot send 104 bytes (float32 [26]) through ring "test": its slots hold 100 bytes',
  });
  assert.throws(() => send([1], { dtype: "string", byteLength: 101 }), RangeError);
  assert.equal(sender.free, 2);
  send([25]);
  send([2], { dtype: "string", byteLength: 100 });
  assert.equal(receiver.receive(KEY).payload.length, 100);
  assert.equal(receiver.receive(KEY).payload.length, 100);
});

Deno.test("a slot of more than 2 GiB says truly how many bytes it carries", () => {
  const bytes = 2 ** 31 + 64;
  const { sender, receiver } = open(1, bytes);
  sender.send({ ...KEY, dtype: "bool", shape: [bytes / 64, 64] }, () => {}); // its pages are never touched
  assert.equal(receiver.receive(KEY).payload.length, bytes);
});

Deno.test("payloads are aligned to 64 bytes and do not overlap, whatever the slot size", () => {
  for (const slotBytes of [0, 1, 63, 64, 65, 1000]) {
    const { sender, receiver } = open(4, slotBytes);
    const message = { ...KEY, dtype: "bool" as const, shape: [slotBytes] };
    for (let i = 0; i < 4; i++) sender.send(message, (payload) => payload.fill(i + 1));
    const payloads = Array.from({ length: 4 }, () => receiver.receive(KEY).payload);
    payloads.forEach((payload, i) => {
      assert.equal(payload.byteOffset % 64, 0);
      assert.ok(payload.every((byte) => byte === i + 1));
      assert.ok(i === 0 || payload.byteOffset >= payloads[i - 1]!.byteOffset + slotBytes + 128);
    });
  }
});

Deno.test("slots and counters wrap around, many times", () => {
  for (const capacity of [1, 2, 3, 5]) {
    const { channel, sender, receiver, send, receive } = open(capacity, 4, 2 * capacity);
    const cells = new Int32Array(channel.memory.buffer); // the head, and 64 bytes on the tail
    let sent = 0;
    let received = 0;
    for (let round = 0; round < 50; round++) {
      const burst = 1 + round % capacity;
      for (let i = 0; i < burst; i++) send(sent++);
      assert.equal(sender.free, capacity - burst);
      assert.equal(receiver.pending, burst);
      for (let i = 0; i < burst; i++) receiver.release(receive(received++).sequence);
      assert.equal(sender.free, capacity);
      assert.equal(receiver.pending, 0);
      assert.deepEqual([cells[0], cells[16]], [sent % channel.period, received % channel.period]);
    }
  }
});

Deno.test("the period is a multiple of the capacity", () => {
  for (const capacity of [1, 2, 3, 7, 1000]) {
    const { period } = createRing({ capacity, slotBytes: 0, name: "test" });
    assert.equal(period % capacity, 0);
    assert.ok(period >= 2 * capacity && period <= 2 ** 30);
  }
});

Deno.test("free counts down as slots are taken, and a slot held is not free", () => {
  const { sender, receiver, send, receive } = open(3, 4);
  for (let i = 0; i < 3; i++) {
    assert.equal(sender.free, 3 - i);
    send(i);
  }
  assert.equal(sender.free, 0);
  const messages = [receive(0), receive(1)];
  assert.equal(receiver.pending, 1);
  assert.equal(sender.free, 0);
  for (const { sequence } of messages) receiver.release(sequence);
  assert.equal(sender.free, 2);
});

Deno.test("slots released out of order go back when the oldest does", () => {
  const { sender, receiver, send, receive } = open(4, 4, 8);
  for (let first = 0; first < 24; first += 4) { // three times around the counters
    for (let i = 0; i < 4; i++) send(first + i);
    const [a, b, c, d] = [0, 1, 2, 3].map((i) => receive(first + i));
    receiver.release(c!.sequence);
    assert.equal(sender.free, 0);
    assert.equal(valueOf(a!), first);
    receiver.release(a!.sequence);
    assert.equal(sender.free, 1);
    receiver.release(b!.sequence);
    assert.equal(sender.free, 3);
    assert.equal(valueOf(d!), first + 3);
    receiver.release(d!.sequence);
    assert.equal(sender.free, 4);
  }
});

Deno.test("release() refuses what is not held", () => {
  const { receiver, send, receive } = open(3, 4);
  const refuses = (sequence: number) =>
    assert.throws(() => receiver.release(sequence), {
      name: "RangeError",
      message: `Cannot release message ${sequence} of ring "test": it is not held`,
    });
  refuses(0);
  for (let i = 0; i < 3; i++) send(i);
  refuses(0); // sent, not received
  receive(0);
  receive(1);
  receiver.release(1);
  refuses(1); // released early, its slot not back yet
  refuses(2);
  receiver.release(0);
  refuses(0);
  refuses(1);
  refuses(-1);
});

Deno.test("receive() refuses a message for another step, micro-batch, tensor or dtype, and keeps it", () => {
  const { sender, receiver } = open(1, 4);
  const sent = { step: 5, microBatch: 3, tensor: 1, dtype: "float32" as const };
  sender.send({ ...sent, shape: [] }, () => {});
  const wrong = { step: 4, microBatch: 2, tensor: 0, dtype: "int32" } as const;
  for (const key of ["step", "microBatch", "tensor", "dtype"] as const) {
    assert.throws(() => receiver.receive({ ...sent, [key]: wrong[key] }), {
      name: "MessageError",
      message: `Received a message of ${key} ${sent[key]} from ring "test": expected ${wrong[key]}`,
    });
    assert.equal(receiver.pending, 1);
    assert.equal(receiver.counters.messages, 0);
  }
  assert.equal(receiver.receive(sent).step, 5);
});

Deno.test("receive() refuses a slot without a header", () => {
  const spoil = (index: number, value: number) => {
    const { channel, receiver, send } = open(1, 4);
    send(0);
    new Int32Array(channel.memory.buffer, 128)[index] = value;
    assert.throws(
      () => receiver.receive(KEY),
      (error: unknown) => error instanceof MessageError && /no message header/.test(error.message),
    );
  };
  spoil(0, 0); // never written
  spoil(4, 99); // no such dtype
  spoil(4, -1);
  spoil(6, 25); // no such rank
  spoil(6, -1);
});

Deno.test("a message whose writing fails is not sent", () => {
  const { sender, receiver, send, receive } = open(1, 4);
  const fail = () => {
    throw new Error("no bytes");
  };
  assert.throws(() => sender.send({ ...KEY, dtype: "int32", shape: [1] }, fail), /no bytes/);
  assert.equal(receiver.pending, 0);
  assert.equal(sender.counters.messages, 0);
  send(0);
  receive(0);
});

Deno.test("counters tell messages and bytes of each end, and no waits where none were", () => {
  const { sender, receiver } = open(4, 4096);
  const sizes = [1, 100, 1024, 0];
  for (const size of sizes) sender.send({ ...KEY, dtype: "float32", shape: [size] }, () => {});
  assert.deepEqual(sender.counters, { messages: 4, bytes: 4500, waits: 0, waitMs: 0 });
  assert.deepEqual(receiver.counters, { messages: 0, bytes: 0, waits: 0, waitMs: 0 });
  receiver.receive(KEY);
  receiver.receive(KEY);
  assert.deepEqual(receiver.counters, { messages: 2, bytes: 404, waits: 0, waitMs: 0 });
});

Deno.test("reset() drops what was sent, held or released early, and the ring works again", () => {
  const { sender, receiver, send, receive } = open(2, 4, 4);
  send(0);
  send(1);
  const held = receive(0);
  receiver.release(receive(1).sequence); // early: message 0 is still held
  receiver.reset();
  assert.equal(sender.free, 2);
  assert.equal(receiver.pending, 0);
  assert.throws(() => receiver.release(held.sequence), RangeError);
  for (let i = 2; i < 12; i += 2) { // the counters come round to those of messages 0 and 1
    send(i);
    send(i + 1);
    receiver.release(receive(i).sequence);
    assert.equal(sender.free, 1);
    receiver.release(receive(i + 1).sequence);
    assert.equal(sender.free, 2);
  }
  send(12);
  receiver.reset(); // sent, not received
  send(13);
  receive(13);
});

Deno.test("an end opened later goes on where the ring stands", () => {
  const { channel, abort, send, receiver, receive } = open(2, 4);
  for (let i = 0; i < 3; i++) {
    send(i);
    receiver.release(receive(i).sequence);
  }
  send(3);
  assert.equal(new RingSender(channel, abort).free, 1);
  assert.equal(valueOf(new RingReceiver(channel, abort).receive({ ...KEY, step: 3 })), 3);
});

Deno.test("createRing() refuses sizes that no ring can have, by name", () => {
  const refuses = (capacity: number, slotBytes: number, message: RegExp) =>
    assert.throws(() => createRing({ capacity, slotBytes, name: "a to b" }), { name: "RangeError", message });
  for (const capacity of [0, -1, 1.5, NaN, Infinity]) {
    refuses(capacity, 4, /ring "a to b" of capacity .*: expected a positive integer/);
  }
  for (const bytes of [-1, 0.5, NaN, Infinity]) {
    refuses(1, bytes, /ring "a to b" with slots of .* bytes: expected an integer >= 0/);
  }
  refuses(1, 2 ** 32 - 256, /"a to b": 1 slots of 4294967040 bytes need 4294967296 bytes/);
  refuses(1, 2 ** 32, /"a to b": 1 slots of 4294967296 bytes need 4294967552 bytes/);
  refuses(2 ** 20, 4096, /shared memory ends at 4294901760; use smaller micro-batches or fewer slots/);
});
