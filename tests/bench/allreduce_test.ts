/** `deno task bench allreduce`: cases, figures, table, page, plots, and a small run. @module */
import assert from "node:assert/strict";
import { bytesNeeded, planCases } from "../../bench/allreduce/cases.ts";
import { caseOf, measureAllreduce } from "../../bench/allreduce/measure.ts";
import { Members } from "../../bench/allreduce/members.ts";
import { allreduceTable } from "../../bench/allreduce/table.ts";
import { bytesName } from "../../bench/allreduce/words.ts";
import { plottedBytes, sizesPlot, workersPlot } from "../../bench/report/allreduce_plots.ts";
import { reportHtml } from "../../bench/report/html.ts";
import { createProgress } from "../../cli/progress.ts";
import { allreduceResults } from "./allreduce_fixture.ts";
import { RESULTS } from "./fixtures.ts";

const quiet = () =>
  createProgress({ stream: { isTerminal: () => false, writeSync: (bytes) => bytes.length } });

Deno.test("sizes that do not fit in memory are left out, with the reason", () => {
  const free = bytesNeeded(2, 1e8, false) / 0.8 + 1;
  assert.deepEqual(planCases([2, 8], [1e8, 4e3], free, false), {
    groups: [{ workers: 2, sizes: [4e3, 1e8] }, { workers: 8, sizes: [4e3] }],
    skipped: [{ workers: 8, bytes: 1e8, reason: "needs 2.5 GB of memory: 0.9 GB are free" }],
  });
  assert.deepEqual(planCases([2], [1e8], free, true).groups, []); // gloo needs some too
  assert.deepEqual(planCases([2, 16], [4e8], 1e12, true), {
    groups: [{ workers: 2, sizes: [4e8] }],
    skipped: [{ workers: 16, bytes: 4e8, reason: "needs 6.4 GB of shared memory: 4.3 GB is the most" }],
  });
});

Deno.test("a case has medians of each contestant, and medians of ratios within rounds", () => {
  const seconds = new Map([["ring", [1, 2, 4]], ["gloo", [10, 8, 12]], ["memcpy", [0.5, 1.6, 1]]] as const);
  const { timings, ringSpeedup } = caseOf(2, 1e9, seconds);
  assert.deepEqual(timings.ring, { seconds: 2, rounds: [1, 2, 4], gigabytesPerSecond: 0.5 });
  assert.deepEqual(timings.gloo, { seconds: 10, rounds: [10, 8, 12], gigabytesPerSecond: 0.1 });
  assert.deepEqual(ringSpeedup, { gloo: 4, memcpy: 0.5 });
});

Deno.test("sizes are named by their unit", () => {
  assert.deepEqual([4, 4e3, 4e5, 1e8, 1.5e9].map(bytesName), ["4 B", "4 kB", "400 kB", "100 MB", "1.5 GB"]);
});

Deno.test("the table has a row a case, columns for what was measured, and what was left out", () => {
  const lines = allreduceTable(allreduceResults()).split("\n");
  assert.equal(lines[0], "Sums between workers, 3 rounds, on 2 cores; more than 2 workers share them");
  assert.match(
    lines[2]!,
    /workers +each +ring +server +gloo +memcpy +ring\/server +ring\/gloo +ring\/memcpy/,
  );
  assert.equal(
    lines[5],
    "      2  100 MB   5.00    3.33   1.00    7.14         1.5x       5.0x         70 %",
  );
  assert.equal(lines.filter((line) => /^ +\d+ +(4 k|100 M)B /.test(line)).length, 6);
  assert.match(lines.join("\n"), /Left out: 400 MB between 8 workers needs 14.8 GB of memory/);
  const without = allreduceTable(allreduceResults(false));
  assert.doesNotMatch(without.split("\n")[2]!, /gloo/);
  assert.ok(lines.every((line) => line.length <= 120));
});

Deno.test("the page has the table, and the plots name every contestant that was measured", async () => {
  const allreduce = allreduceResults();
  const { machine, engine, date } = RESULTS;
  const page = reportHtml({ machine, engine, date, allreduce }, []);
  assert.equal(page.match(/<td>100 MB<\/td>/g)!.length, 3);
  assert.doesNotMatch(page, /Nothing was measured|Published figures|How to read this/);
  for (const plot of [workersPlot, sizesPlot]) {
    const svg = await plot(allreduce);
    for (const name of [">ring<", ">parameter server<", ">gloo (PyTorch)<", ">memcpy<"]) {
      assert.ok(svg.includes(name), name);
    }
    assert.ok(!(await plot(allreduceResults(false))).includes("gloo"));
  }
  assert.match(await workersPlot(allreduce), /Ring against parameter server as workers grow/);
});

Deno.test("the plot over workers is of the size nearest to 100 MB that most of them have", () => {
  const { cases } = allreduceResults();
  assert.equal(plottedBytes(cases), 1e8);
  assert.equal(plottedBytes(cases.filter(({ workers, bytes }) => workers < 8 || bytes < 1e8)), 4e3);
  assert.equal(plottedBytes([]), undefined);
});

Deno.test("measureAllreduce() measures every case, and stops when it is told to", async () => {
  const options = { workers: [2, 3], bytes: [400, 40_000], rounds: 2, torch: undefined };
  using progress = quiet();
  const { results, failure } = await measureAllreduce(options, progress, 1, () => false);
  assert.equal(failure, undefined);
  assert.deepEqual(results.cases.map(({ workers, bytes }) => [workers, bytes]), [
    [2, 400],
    [2, 40_000],
    [3, 400],
    [3, 40_000],
  ]);
  for (const { timings } of results.cases) {
    assert.deepEqual(Object.keys(timings), ["ring", "parameterServer", "memcpy"]);
    for (const { rounds, gigabytesPerSecond } of Object.values(timings)) {
      assert.ok(rounds.length === 2 && rounds.every((seconds) => seconds > 0) && gigabytesPerSecond > 0);
    }
  }
  let asked = 0; // a group, three contestants, a first round: then it is stopped
  const stopped = await measureAllreduce(options, progress, 1, () => ++asked > 5);
  assert.deepEqual(stopped.results.cases.map(({ timings }) => timings.ring!.rounds.length), [1]);
  await assert.rejects(measureAllreduce(options, progress, 1, () => true), /nothing was measured/);
});

Deno.test("a worker that fails ends the measurement with its error", async () => {
  using members = await Members.start(2, 100, [0]);
  await assert.rejects(
    members.run({ what: "ring", length: 101, repetitions: 1 }),
    /Worker \d of 2 failed: Cannot sum 101 elements in slot 0 of group "ring"/,
  );
});
