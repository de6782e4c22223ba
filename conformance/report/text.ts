/** A run as text for the terminal: the table, then what is wrong. @module */
import { plainTable } from "../../cli/table.ts";
import type { KernelComparison } from "../suite/messages.ts";
import type { Verdict } from "./judge.ts";
import type { FamilyRow } from "./rows.ts";

const MAX_MESSAGE = 300; // characters of a failure's message

interface Column {
  readonly title: string;
  readonly value: (row: FamilyRow) => number | undefined;
}

const SPECS: readonly Column[] = [
  { title: "specs", value: ({ specs }) => specs },
  { title: "passed", value: ({ passed }) => passed },
  { title: "excepted", value: ({ excepted }) => excepted },
  { title: "failed", value: ({ failed }) => failed },
];
const BESIDE_NODE: readonly Column[] = [
  ...SPECS,
  { title: "gained", value: ({ gained }) => gained },
  { title: "left out", value: ({ leftOut }) => leftOut },
];
const BESIDE_STOCK: readonly Column[] = [
  ...SPECS,
  { title: "stock passes", value: ({ stock }) => stock },
  { title: "lost", value: ({ lost }) => lost },
  { title: "gained", value: ({ gained }) => gained },
];

/** The table, a family a row. */
export function familyTable(rows: readonly FamilyRow[], beside: "node" | "stock" | "nothing"): string {
  const columns = beside === "node" ? BESIDE_NODE : beside === "stock" ? BESIDE_STOCK : SPECS;
  const lines = rows.map((row) => [row.family, ...columns.map(({ value }) => String(value(row) ?? ""))]);
  return draw(["family", ...columns.map(({ title }) => title)], lines);
}

/** What the columns beside the usual ones mean. */
export function legend(beside: "node" | "stock" | "nothing"): string {
  switch (beside) {
    case "node":
      return "specs: those that tfjs-node runs. gained, left out: of those that tfjs-node leaves out, " +
        "how many pass here and how many fail";
    case "stock":
      return "stock: tfjs-backend-wasm as it is published. lost: passes there and fails here, without an exception; " +
        "gained: fails there and passes here";
    case "nothing":
      return "";
  }
}

/** How captured kernel calls compare, in a few lines. */
export function kernelSummary(kernels: readonly KernelComparison[]): string {
  const sum = (count: (kernel: KernelComparison) => number) => kernels.reduce((n, k) => n + count(k), 0);
  const uncapturable = kernels.filter(({ uncapturable }) => Object.keys(uncapturable).length > 0);
  const calls = ({ uncapturable }: KernelComparison) =>
    Object.values(uncapturable).reduce((a, b) => a + b, 0);
  return [
    `Captured: ${sum(({ compared }) => compared)} calls of ${kernels.length} kernels compared; ` +
    `${sum(({ identical }) => identical)} identical, ${sum(({ close }) => close)} within 1e-5, ` +
    `${sum(({ different }) => different.length)} different; ${sum(calls)} cannot be captured:`,
    ...uncapturable.flatMap(({ kernel, uncapturable }) =>
      Object.entries(uncapturable).map(([reason, count]) => `  ${kernel}: ${count} x ${reason}`)
    ),
  ].join("\n");
}

/** What is wrong; nothing if all is well. */
export function faults({ failed, failedKernels, stale }: Verdict): string {
  const lines: string[] = [];
  for (const { name, failures } of failed) {
    lines.push(`FAILED ${name}`, ...failures.map((message) => `    ${shortened(message)}`));
  }
  for (const fault of failedKernels) lines.push(`FAILED captured: ${fault}`);
  for (const fault of stale) lines.push(`FAILED exceptions.ts: ${fault}`);
  return lines.join("\n");
}

function shortened(message: string): string {
  const line = message.replaceAll(/\s+/g, " ");
  return line.length <= MAX_MESSAGE ? line : `${line.slice(0, MAX_MESSAGE)}…`;
}

function draw(head: string[], lines: string[][]): string {
  const table = plainTable(head, head.map((_, i) => i === 0 ? "left" : "right"), "  ");
  table.push(...lines);
  return table.toString().replaceAll(/ +$/gm, "");
}
