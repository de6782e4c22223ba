/** The comparison as a table for the terminal. @module */
import { stripVTControlCharacters, styleText } from "node:util";
import { plainTable } from "../../cli/table.ts";
import type { BenchResults } from "../results.ts";
import { type Column, COLUMNS, NOTHING } from "./columns.ts";
import { describeDevices, describeMachine, describeSettings } from "./describe.ts";
import { type Row, rowsOf } from "./rows.ts";

const MAX_COLUMNS = 120; // characters of a line where no terminal says otherwise
const MAX_PARTITION = 14; // characters of a partition in its cell; it stands in full below the table
const GAP = "  ";

/** How a table is written. Default: as standard output takes it. */
export interface TableOptions {
  /** Whether to colour. Default: only on a terminal, and not where NO_COLOR is set. */
  readonly colour?: boolean;
  /** Characters of a line: columns are left out until the table fits. Default: the terminal's, else 120. */
  readonly columns?: number;
}

/**
 * What was measured, a strategy a row: sequential, model parallel, pipeline by schedule, peers; with the
 * settings above and the partitions below.
 */
export function resultsTable(results: BenchResults, options: TableOptions = {}): string {
  const rows = rowsOf(results.resnet50);
  if (results.resnet50 === undefined || rows.length === 0) return "Nothing was measured.\n";
  const terminal = Deno.stdout.isTerminal();
  const colour = options.colour ?? (terminal && !Deno.noColor);
  const width = options.columns ?? (terminal ? Deno.consoleSize().columns : MAX_COLUMNS);

  let columns = COLUMNS.filter((column) => !column.pageOnly);
  let table = draw(rows, columns, colour);
  while (lineWidth(table) > width) {
    const ranked = columns.filter((column) => column.rank !== undefined);
    if (ranked.length === 0) break;
    const least = ranked.reduce((a, b) => a.rank! < b.rank! ? a : b);
    columns = columns.filter((column) => column !== least);
    table = draw(rows, columns, colour);
  }
  const lines = [
    describeSettings(results.resnet50),
    describeDevices(results),
    describeMachine(results.machine),
    "",
    table,
    "",
    "gain: against sequential in the same round, median over rounds; +100 % is twice as fast",
    ...partitions(rows),
  ];
  return lines.join("\n").replaceAll(/ +$/gm, "") + "\n";
}

function draw(rows: readonly Row[], columns: readonly Column[], colour: boolean): string {
  const paint = (format: Parameters<typeof styleText>[0], text: string) =>
    colour ? styleText(format, text, { validateStream: false }) : text;
  const table = plainTable(
    columns.map(({ title, unit }) => `${paint("bold", title)}\n${paint("dim", unit)}`),
    columns.map(({ text }) => text ? "left" : "right"),
    GAP,
  );
  for (const row of rows) {
    table.push(columns.map((column) => {
      const cell = column.title === "partition" ? shortPartition(row) : column.cell(row);
      if (column.title !== "gain" || row.kind === "single") return cell;
      return paint(row.result.gainPercent < 0 ? "red" : "green", cell);
    }));
  }
  const lines = table.toString().split("\n");
  const rule = "─".repeat(lineWidth(lines.join("\n")));
  lines.splice(2, 0, paint("dim", rule)); // below the two lines of the heading
  return lines.join("\n");
}

/** The partitions in full, those strategies together that share one. */
function partitions(rows: readonly Row[]): string[] {
  const byPartition = new Map<string, string[]>();
  for (const { name, result: { partition = [] } } of rows) {
    if (partition.length === 0) continue;
    const key = partition.join(", ");
    byPartition.set(key, [...byPartition.get(key) ?? [], name]);
  }
  return [...byPartition].map(([layers, names]) => `cut at ${layers}: ${names.join(", ")}`);
}

/** "conv4_block…", "conv3_blo… +2" */
function shortPartition({ result: { partition = [] } }: Row): string {
  const [first = NOTHING] = partition;
  const more = partition.length > 1 ? ` +${partition.length - 1}` : "";
  const room = MAX_PARTITION - more.length;
  return (first.length <= room ? first : first.slice(0, room - 1) + "…") + more;
}

function lineWidth(text: string): number {
  return Math.max(...text.split("\n").map((line) => stripVTControlCharacters(line).trimEnd().length));
}
