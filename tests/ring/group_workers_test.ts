/** Tests of groups between threads: sums of every length and size, races, aborts. @module */
import assert from "node:assert/strict";
import { AbortFlag } from "../../ring/abort.ts";
import {
  type AlgorithmName,
  ALGORITHMS,
  createGroup,
  GroupLayout,
  UNIT_LENGTH,
} from "../../ring/group_channel.ts";
import { openGroup } from "../../ring/open_group.ts";
import type { GroupChannel } from "../../ring/group_channel.ts";
import { contribution } from "./contributions.ts";
import type { MemberResult, MemberTask } from "./member.ts";
import { draws } from "./messages.ts";
import { startMember } from "./start_peer.ts";

const SIZES = [1, 2, 3, 4, 5, 8];

/** Nothing, one, primes, units, and more than all members' units. */
const LENGTHS = [0, 1, 2, 3, 13, 97, 1009, UNIT_LENGTH - 1, UNIT_LENGTH, 32771, 65537, 300007, 800011];

/** Runs all members to their end. */
async function run(
  channel: GroupChannel,
  task: Pick<MemberTask, "rounds" | "values" | "seed">,
): Promise<MemberResult[]> {
  const abort = new AbortFlag();
  const members = Array.from(
    { length: channel.size },
    (_, rank) => startMember({ channel, rank, abort: abort.shared, ...task }),
  );
  try {
    const failed = members.map(async ({ result }, rank) => {
      const answer = await result;
      if (answer.error) abort.raise(rank); // the others must not wait for it
      return answer;
    });
    const results = await Promise.all(failed);
    for (const { error } of results) if (error?.name !== "AbortedError") assert.equal(error, undefined);
    return results;
  } finally {
    for (const member of members) member[Symbol.dispose]();
  }
}

for (const algorithm of ALGORITHMS) {
  Deno.test(`${algorithm}: sums of every length are right, and the same on all members`, async () => {
    for (const size of SIZES) {
      const channel = createGroup({ size, lengths: LENGTHS, algorithm, name: "test" });
      const rounds = [...LENGTHS.entries()].map(([slot, length]) => [{ slot, length }]);
      const results = await run(channel, { rounds, values: "whole" });
      for (const { hashes } of results) {
        assert.equal(hashes.length, LENGTHS.length);
        assert.deepEqual(hashes, results[0]!.hashes);
      }
    }
  });

  Deno.test(`${algorithm}: a sum of fractions has the same bits on all members and in every run`, async () => {
    const lengths = [70001, 1009];
    const rounds = [lengths.map((length, slot) => ({ slot, length }))];
    for (const size of [2, 3, 8]) {
      const channel = createGroup({ size, lengths, algorithm, name: "test" });
      const first = await run(channel, { rounds, values: "fractions", seed: 1 });
      const second = await run(channel, { rounds, values: "fractions", seed: 2 });
      for (const { hashes } of [...first, ...second]) assert.deepEqual(hashes, first[0]!.hashes);
    }
  });

  Deno.test(`${algorithm}: hundreds of sums, several under way, pauses, counters across the wrap`, async () => {
    for (const size of SIZES) {
      await run(nearWrap(size, algorithm), { rounds: manyRounds(size), values: "whole", seed: size });
    }
  });

  Deno.test(`${algorithm}: thousands of small sums in a row, without pauses`, async () => {
    const rounds = Array.from({ length: 10_000 }, () => [{ slot: 0, length: 20 }]);
    for (const size of [2, 3]) {
      await run(createGroup({ size, lengths: [20], algorithm, name: "test" }), { rounds, values: "whole" });
    }
  });

  Deno.test(`${algorithm}: an abort ends all who wait, and a reset lets them work again`, async () => {
    const lengths = [200003, 10];
    const size = 3;
    const channel = createGroup({ size, lengths, algorithm, name: "test" });
    const abort = new AbortFlag();
    const start = (rank: number, task: Partial<MemberTask> = {}) =>
      startMember({
        channel,
        rank,
        abort: abort.shared,
        values: "whole",
        rounds: [lengths.map((length, slot) => ({ slot, length }))],
        ...task,
      });
    // Member 0 comes last, and only for the second sum's round.
    const waiting = [1, 2].map((rank) => start(rank));
    await Promise.all(waiting.map(({ started }) => started));
    await new Promise((resolve) => setTimeout(resolve, 60));
    const raised = performance.now();
    abort.raise(0);
    for (const { result } of waiting) {
      const { error } = await result;
      assert.deepEqual(error, { name: "AbortedError", message: "Stopped because worker 0 failed" });
    }
    assert.ok(performance.now() - raised < 1000);
    waiting.forEach((member) => member[Symbol.dispose]());
    abort.clear();
    for (let rank = 0; rank < size; rank++) openGroup(channel, rank, abort).reset();
    const again = [0, 1, 2].map((rank) => start(rank));
    for (const { result } of again) assert.equal((await result).error, undefined);
    again.forEach((member) => member[Symbol.dispose]());
  });
}

Deno.test("a member that waits for a late one counts the wait, and names it when it takes too long", async () => {
  const channel = createGroup({ size: 2, lengths: [1000], algorithm: "ring", name: "gradients" });
  const abort = new AbortFlag();
  const group = openGroup(channel, 0, abort);
  const { now } = performance;
  const { error } = console;
  const lines: string[] = [];
  using late = startMember({ channel, rank: 1, abort: abort.shared, values: "whole", rounds: [[]] });
  await late.result; // it does nothing
  const reduction = group.reduce(0, 1000, contribution("whole", 0, 0));
  let leap = 0;
  performance.now = () => now.call(performance) + (leap += 30_001);
  console.error = (line: string) => {
    lines.push(line);
    abort.raise(1);
  };
  try {
    assert.throws(() => reduction.finish(), { name: "AbortedError", by: 1 });
  } finally {
    performance.now = now;
    console.error = error;
  }
  assert.deepEqual(lines, [
    'Member 0 of group "gradients" still waiting for member 1 to add its part in slot 0 for 60 s',
  ]);
});

/** A group whose counters are about to wrap. */
function nearWrap(size: number, algorithm: AlgorithmName): GroupChannel {
  const channel = createGroup({ size, lengths: [5000, 64, 100000, 17], algorithm, name: "test" });
  const cells = new Int32Array(channel.memory.buffer);
  const layout = new GroupLayout(channel);
  for (let member = 0; member < size; member++) {
    cells[layout.tick(member)] = 2 ** 31 - 100;
    for (let slot = 0; slot < 4; slot++) {
      cells[layout.released(slot, member)] = 2 ** 31 - 50 - slot;
      for (let lane = 0; lane < size; lane++) cells[layout.done(slot, member, lane)] = 2 ** 31 - 60;
    }
  }
  return channel;
}

/** 150 rounds of up to four sums at once. */
function manyRounds(seed: number) {
  const random = draws(1000 + seed);
  return Array.from({ length: 150 }, () => {
    const slots = [0, 1, 2, 3].filter(() => random() % 4 > 0);
    return slots.map((slot) => ({ slot, length: random() % ([5000, 64, 300, 17][slot]! + 1) }));
  });
}
