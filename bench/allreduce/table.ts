/** What was measured of summing among workers, as text. @module */
import { plainTable } from "../../cli/table.ts";
import { type AllreduceResults, CONTESTANTS } from "./results.ts";
import { bytesName, CONTESTANT_TITLES, gigabytes, headline, MEANING, percent, times } from "./words.ts";

/** A row for each number of workers and size: each contestant's GB/s, and the ring against the others. */
export function allreduceTable(results: AllreduceResults): string {
  const { cases, skipped } = results;
  if (cases.length === 0) return "Nothing was measured.\n";
  const shown = CONTESTANTS.filter((name) => cases.some(({ timings }) => timings[name]));
  const gloo = shown.includes("gloo");
  const head = [
    "workers",
    "each",
    ...shown.map((name) => `${CONTESTANT_TITLES[name]}\nGB/s`),
    "ring/server",
    ...(gloo ? ["ring/gloo"] : []),
    "ring/memcpy",
  ];
  const table = plainTable(head, head.map(() => "right"), "  ");
  for (const { workers, bytes, timings, ringSpeedup } of cases) {
    table.push([
      String(workers),
      bytesName(bytes),
      ...shown.map((name) => gigabytes(timings[name])),
      times(ringSpeedup.parameterServer),
      ...(gloo ? [times(ringSpeedup.gloo)] : []),
      percent(ringSpeedup.memcpy),
    ]);
  }
  const lines = [
    headline(results),
    "",
    table.toString(),
    "",
    ...MEANING,
    ...skipped.map(({ workers, bytes, reason }) =>
      `Left out: ${bytesName(bytes)} between ${workers} workers ${reason}`
    ),
  ];
  return lines.join("\n").replaceAll(/ +$/gm, "") + "\n";
}
