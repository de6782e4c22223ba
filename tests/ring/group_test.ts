/** Tests of groups within one thread: who may go on when, and what is refused. @module */
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
import { compile } from "../../ring/simd/build.ts";
import { MODULE } from "../../ring/simd/module.ts";
import { checkSum, contribution } from "./contributions.ts";

function open(size: number, lengths: number[], algorithm: AlgorithmName = "ring") {
  const channel = createGroup({ size, lengths, algorithm, name: "test" });
  const abort = new AbortFlag();
  return Array.from({ length: size }, (_, rank) => openGroup(channel, rank, abort));
}

Deno.test("the ring's WebAssembly that is committed is what its source compiles to", async () => {
  assert.equal((await compile()).toBase64(), MODULE, 'run "deno task kernels"');
});

for (const algorithm of ALGORITHMS) {
  Deno.test(`${algorithm}: advance() goes on without waiting, and is done after a turn for each member`, () => {
    const length = 5 * UNIT_LENGTH * 3 + 7;
    const groups = open(3, [length], algorithm);
    const sums = groups.map((group, rank) => group.reduce(0, length, contribution("whole", 0, rank)));
    for (let turn = 0; turn < 3; turn++) for (const sum of sums) sum.advance();
    for (const [rank, sum] of sums.entries()) {
      assert.ok(sum.advance());
      checkSum("whole", 0, 3, sum.finish());
      assert.equal(groups[rank]!.waitMs, 0);
    }
  });

  Deno.test(`${algorithm}: a sum is not whole without every member's part`, () => {
    for (const absent of [0, 1, 2]) {
      const groups = open(3, [100], algorithm);
      const present = groups.filter(({ rank }) => rank !== absent);
      const sums = present.map((group) => group.reduce(0, 100, contribution("whole", 0, group.rank)));
      for (let turn = 0; turn < 5; turn++) for (const sum of sums) assert.equal(sum.advance(), false);
      assert.throws(() => groups[present[0]!.rank]!.release(0), /holds no finished sum/);
    }
  });

  Deno.test(`${algorithm}: a slot's next sum begins when every member has released the one before`, () => {
    const groups = open(2, [100], algorithm);
    const begin = (number: number, rank: number) =>
      groups[rank]!.reduce(0, 100, contribution("whole", number, rank));
    let held = [begin(0, 0), begin(0, 1)];
    for (let number = 0; number < 4; number++) {
      for (let turn = 0; turn < 3; turn++) for (const sum of held) sum.advance();
      assert.ok(held.every((sum) => sum.advance()));
      const [holder, other] = number % 2 === 0 ? [0, 1] as const : [1, 0] as const;
      groups[other]!.release(0);
      const next = begin(number + 1, other);
      for (let turn = 0; turn < 3; turn++) assert.equal(next.advance(), false);
      checkSum("whole", number, 2, held[holder]!.finish());
      groups[holder]!.release(0);
      const last = begin(number + 1, holder);
      held = holder === 0 ? [last, next] : [next, last];
    }
  });
}

for (const algorithm of ALGORITHMS) {
  Deno.test(`${algorithm}: reset() forgets what was under way or held, and members sum again`, () => {
    const groups = open(2, [100, 200], algorithm);
    const begin = (number: number, slot: number, rank: number) =>
      groups[rank]!.reduce(slot, 100, contribution("whole", number, rank));
    for (let number = 0; number < 3; number++) {
      const held = [0, 1].map((slot) => [begin(number, slot, 0), begin(number, slot, 1)]).flat();
      for (let turn = 0; turn < 3; turn++) for (const sum of held) sum.advance();
      const early = number % 2;
      groups[early]!.release(0);
      const next = begin(number + 1, 0, early);
      for (let turn = 0; turn < 3; turn++) assert.equal(next.advance(), false);
      for (const sum of held) {
        assert.ok(sum.advance());
        checkSum("whole", number, 2, sum.finish()); // the one that is still held among them
      }
      for (const group of groups) group.reset();
    }
    for (let number = 0; number < 3; number++) {
      const sums = [begin(number, 0, 0), begin(number, 0, 1)];
      for (let turn = 0; turn < 3; turn++) for (const sum of sums) sum.advance();
      for (const [rank, sum] of sums.entries()) {
        assert.ok(sum.advance());
        checkSum("whole", number, 2, sum.finish());
        groups[rank]!.release(0);
      }
    }
  });

  Deno.test(`${algorithm}: whichever sum is asked for, those before it go on`, () => {
    const groups = open(2, [100, 100], algorithm);
    const begin = (slot: number) =>
      groups.map((group) => group.reduce(slot, 100, contribution("whole", slot, group.rank)));
    const [first, second] = [begin(0), begin(1)];
    for (let turn = 0; turn < 3; turn++) for (const sum of second) sum.advance();
    for (const group of groups) group.release(0); // which a sum that is not whole refuses
    checkSum("whole", 0, 2, first[0]!.finish());
  });
}

Deno.test("a member raises its tick with all that it does, so that those who wait for it wake up", () => {
  const channel = createGroup({ size: 2, lengths: [100], algorithm: "ring", name: "test" });
  const cells = new Int32Array(channel.memory.buffer);
  const tick = new GroupLayout(channel).tick(0);
  const [a, b] = [0, 1].map((rank) => openGroup(channel, rank, new AbortFlag()));
  const [first, second] = [a!, b!].map((group, rank) => group.reduce(0, 100, contribution("whole", 0, rank)));
  const ticks = [first!, second!, first!, second!].map((sum) => {
    sum.advance();
    return cells[tick];
  });
  a!.release(0);
  assert.deepEqual([...ticks, cells[tick]], [1, 1, 2, 2, 3]);
});

Deno.test("a group of one returns its own part", () => {
  const [group] = open(1, [70000]);
  const sum = group!.reduce(0, 70000, contribution("whole", 5, 0)).finish();
  checkSum("whole", 5, 1, sum);
});

Deno.test("sums begin at multiples of 64 bytes and do not overlap", () => {
  for (const algorithm of ALGORITHMS) {
    const groups = open(3, [1, 17, 0, 33], algorithm);
    const begin = (rank: number) =>
      [1, 17, 0, 33].map((length, slot) =>
        groups[rank]!.reduce(slot, length, contribution("whole", slot, rank))
      );
    const all = [0, 1, 2].map(begin);
    for (let turn = 0; turn < 3; turn++) for (const sums of all) for (const sum of sums) sum.advance();
    let end = 0;
    for (const [slot, reduction] of all[0]!.entries()) {
      const sum = reduction.finish();
      assert.equal(sum.byteOffset % 64, 0);
      assert.ok(sum.byteOffset >= end);
      end = sum.byteOffset + sum.byteLength;
      checkSum("whole", slot, 3, sum);
    }
  }
});

Deno.test("members that give different lengths are told", () => {
  const [a, b] = open(2, [100]);
  a!.reduce(0, 100, contribution("whole", 0, 0)).advance();
  assert.throws(() => b!.reduce(0, 99, contribution("whole", 0, 1)).advance(), {
    name: "RangeError",
    message:
      'Cannot sum 99 elements in slot 0 of group "test": member 0 sums 100; all members must give the same length',
  });
});

Deno.test("a member opened later goes on where the one before it ended", () => {
  const channel = createGroup({ size: 1, lengths: [10], algorithm: "ring", name: "test" });
  for (let number = 0; number < 3; number++) {
    const group = openGroup(channel, 0, new AbortFlag());
    checkSum("whole", number, 1, group.reduce(0, 10, contribution("whole", number, 0)).finish());
    group.release(0);
  }
});

Deno.test("reduce() and release() refuse a slot or a length that there is not, and a slot in use", () => {
  const [group] = open(1, [10, 0]);
  const part = contribution("whole", 0, 0);
  for (const slot of [-1, 2, 0.5]) {
    const message = new RegExp(`slot ${slot} of group "test": it has 2 slots`);
    assert.throws(() => group!.reduce(slot, 1, part), { name: "RangeError", message });
    assert.throws(() => group!.release(slot), { name: "RangeError", message });
  }
  for (const length of [-1, 11, 0.5, NaN]) {
    assert.throws(() => group!.reduce(0, length, part), {
      name: "RangeError",
      message: `Cannot sum ${length} elements in slot 0 of group "test": expected an integer from 0 to 10, ` +
        "for which the slot was made",
    });
  }
  assert.throws(() => group!.release(0), /Cannot release slot 0 of group "test": it holds no finished sum/);
  group!.reduce(0, 10, part);
  assert.throws(
    () => group!.reduce(0, 10, part),
    /Cannot begin a sum in slot 0 .* release the one before first/,
  );
  assert.throws(() => group!.release(0), /holds no finished sum/);
});

Deno.test("createGroup() refuses nonsense, and what does not fit in shared memory", () => {
  const options = { size: 2, lengths: [10], algorithm: "ring", name: "test" } as const;
  for (const size of [0, -1, 1.5, NaN]) {
    assert.throws(() => createGroup({ ...options, size }), {
      name: "RangeError",
      message: `Cannot create group "test" of ${size} members: expected a positive integer`,
    });
  }
  for (const length of [-1, 0.5, NaN, 2 ** 53]) {
    assert.throws(() => createGroup({ ...options, lengths: [1, length] }), {
      name: "RangeError",
      message: `Cannot create group "test" for sums of ${length} elements: expected an integer >= 0`,
    });
  }
  assert.throws(() => createGroup({ ...options, algorithm: "tree" as AlgorithmName }), {
    name: "TypeError",
    message: 'Cannot create group "test" with algorithm "tree": expected one of ring, parameterServer',
  });
  assert.throws(() => createGroup({ ...options, lengths: [2 ** 29, 2 ** 29] }), {
    name: "RangeError",
    message:
      /^Cannot create group "test": ring of 2 members for 2 sums of 1073741824 elements in all needs 4295\d+ bytes, and shared memory ends at 4294901760; use several groups, or a smaller model$/,
  });
  assert.throws(
    () => createGroup({ ...options, size: 8, lengths: [2 ** 28], algorithm: "parameterServer" }),
    {
      name: "RangeError",
      message: /parameterServer of 8 members .* needs 8589\d+ bytes.* use "ring", or fewer members$/,
    },
  );
});

Deno.test("openGroup() refuses a member that there is not", () => {
  const channel = createGroup({ size: 2, lengths: [10], algorithm: "ring", name: "test" });
  for (const rank of [-1, 2, 0.5]) {
    assert.throws(() => openGroup(channel, rank, new AbortFlag()), {
      name: "RangeError",
      message: `Cannot open member ${rank} of group "test": expected an integer from 0 to 1`,
    });
  }
});

Deno.test("an empty group of sums, and sums of nothing, need no work", () => {
  assert.deepEqual(open(2, []).map(({ size, rank }) => [size, rank]), [[2, 0], [2, 1]]);
  const [a] = open(2, [0]);
  assert.equal(a!.reduce(0, 0, contribution("whole", 0, 0)).finish().length, 0);
});
