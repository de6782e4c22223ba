/**
 * One worker of the benchmark: a member of two groups, a ring and a parameter server, bound to a core.
 *
 * Its part lies in plain memory of its own, as an engine's gradient does. `memcpy` copies
 * `(members - 1) / members` of it, twice: as many bytes as a ring's members send each other in reduce-scatter and
 * in all-gather.
 * @module
 */
import { AbortFlag } from "../../ring/abort.ts";
import type { Group } from "../../ring/group.ts";
import type { AlgorithmName, GroupChannel } from "../../ring/group_channel.ts";
import { openGroup } from "../../ring/open_group.ts";
import { pinToCore } from "../../runtime/machine/affinity.ts";
import { Copier } from "./copier.ts";

/** What a worker is given first. */
export interface MemberSetup {
  readonly channels: Readonly<Record<AlgorithmName, GroupChannel>>;
  /** A group with one slot, in which the workers await each other. */
  readonly gate: GroupChannel;
  readonly abort: SharedArrayBuffer;
  readonly rank: number;
  readonly core: number;
  /** Elements of the largest sum. */
  readonly length: number;
}

/** What a worker is told to do. */
export interface MemberOrder {
  readonly what: AlgorithmName | "memcpy";
  /** Elements. */
  readonly length: number;
  readonly repetitions: number;
}

/** What it answers: seconds of one repetition, on the average. */
export interface MemberAnswer {
  readonly seconds?: number;
  readonly error?: string;
}

const port = self as unknown as {
  onmessage: (event: MessageEvent<MemberSetup | MemberOrder>) => void;
  postMessage(message: MemberAnswer): void;
};

class Member {
  readonly #groups: Readonly<Record<AlgorithmName, Group>>;
  readonly #gate: Group;
  readonly #part: Float32Array<ArrayBuffer>;
  readonly #target: Float32Array<SharedArrayBuffer>;
  readonly #copier: Copier;

  constructor(setup: MemberSetup) {
    pinToCore(setup.core);
    const abort = new AbortFlag(setup.abort);
    const open = (channel: GroupChannel) => openGroup(channel, setup.rank, abort);
    this.#groups = {
      ring: open(setup.channels.ring),
      parameterServer: open(setup.channels.parameterServer),
    };
    this.#gate = open(setup.gate);
    this.#part = new Float32Array(setup.length).fill(setup.rank + 1);
    this.#target = new Float32Array(new SharedArrayBuffer(4 * setup.length));
    this.#copier = new Copier(this.#part);
  }

  /** Seconds of one repetition. */
  run({ what, length, repetitions }: MemberOrder): number {
    const once = what === "memcpy" ? () => this.#copy(length) : () => this.#sum(this.#groups[what], length);
    this.#pass();
    const start = performance.now();
    for (let i = 0; i < repetitions; i++) once();
    return (performance.now() - start) / 1000 / repetitions;
  }

  #sum(group: Group, length: number): void {
    const sum = group.reduce(0, length, this.#copier).finish();
    const expected = group.size * (group.size + 1) / 2;
    if (sum[0] !== expected || sum[length - 1] !== expected) {
      throw new Error(`A sum is ${sum[0]} and ${sum[length - 1]} at its ends instead of ${expected}`);
    }
    group.release(0);
  }

  #copy(length: number): void {
    const { size } = this.#gate;
    const target = this.#target.subarray(0, Math.ceil(length * (size - 1) / size));
    for (let pass = 0; pass < 2; pass++) this.#copier.read(0, target);
  }

  /** Waits until all workers have come. */
  #pass(): void {
    this.#gate.reduce(0, 1, { read: (_, target) => target.fill(0) }).finish();
    this.#gate.release(0);
  }
}

let member: Member | undefined;

port.onmessage = ({ data }) => {
  try {
    if ("what" in data) return port.postMessage({ seconds: member!.run(data) });
    member = new Member(data);
    port.postMessage({});
  } catch (error) {
    port.postMessage({ error: (error as Error).message });
  }
};
