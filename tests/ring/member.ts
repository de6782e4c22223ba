/** A worker that is a member of a group and sums what the test says. @module */
import { AbortFlag } from "../../ring/abort.ts";
import type { Group, Reduction } from "../../ring/group.ts";
import type { GroupChannel } from "../../ring/group_channel.ts";
import { openGroup } from "../../ring/open_group.ts";
import { checkSum, contribution, hash, type Values } from "./contributions.ts";
import { draws, sleep } from "./messages.ts";

/** One sum. */
export interface SumTask {
  readonly slot: number;
  readonly length: number;
}

/** What a member does. */
export interface MemberTask {
  readonly channel: GroupChannel;
  readonly rank: number;
  readonly abort: SharedArrayBuffer;
  /** Sums that are under way at once, round after round. */
  readonly rounds: readonly (readonly SumTask[])[];
  readonly values: Values;
  /** Sleeps now and then, and finishes and releases in another order than the others: drawn from this seed. */
  readonly seed?: number;
}

/** What a member answers with, after the word that it has started. */
export interface MemberResult {
  /** One of each sum, in order. */
  readonly hashes: readonly number[];
  readonly waitMs: number;
  readonly error?: { readonly name: string; readonly message: string };
}

const port = self as unknown as {
  onmessage: (event: MessageEvent<MemberTask>) => void;
  postMessage(message: "started" | MemberResult): void;
};

/** One round. @param first number of its first sum */
function round(
  group: Group,
  task: MemberTask,
  sums: readonly SumTask[],
  first: number,
  random: () => number,
) {
  const { values, rank, channel: { size }, seed } = task;
  const pause = () => seed !== undefined && random() % 8 === 0 && sleep(random() % 3);
  const under: { reduction: Reduction; slot: number; number: number; sum?: Float32Array; hash: number }[] =
    [];
  for (const [i, { slot, length }] of sums.entries()) {
    pause();
    const reduction = group.reduce(slot, length, contribution(values, first + i, rank));
    under.push({ reduction, slot, number: first + i, hash: 0 });
    if (random() % 2 === 0) under[random() % under.length]!.reduction.advance();
  }
  const order = seed === undefined ? under : shuffled(under, random);
  for (const one of order) {
    one.sum = one.reduction.finish();
    checkSum(values, one.number, size, one.sum);
    one.hash = hash(one.sum);
    pause();
  }
  for (const { slot, number, sum, hash: before } of seed === undefined ? under : shuffled(under, random)) {
    pause();
    // Looked at as late as this: nobody may write to a sum that is held.
    if (hash(sum!) !== before) throw new Error(`Sum ${number} changed while it was held`);
    group.release(slot);
  }
  return under.map((one) => one.hash);
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const result = [...values];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random() % (i + 1);
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}

port.onmessage = ({ data: task }) => {
  const random = draws((task.seed ?? 0) * 64 + task.rank);
  const group = openGroup(task.channel, task.rank, new AbortFlag(task.abort));
  port.postMessage("started");
  const hashes: number[] = [];
  try {
    for (const sums of task.rounds) hashes.push(...round(group, task, sums, hashes.length, random));
    port.postMessage({ hashes, waitMs: group.waitMs });
  } catch (error) {
    const { name, message } = error as Error;
    port.postMessage({ hashes, waitMs: group.waitMs, error: { name, message } });
  }
};
