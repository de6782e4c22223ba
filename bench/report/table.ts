/** The comparisons as tables for the terminal. @module */
import { stripVTControlCharacters, styleText } from "node:util";
import { plainTable } from "../../cli/table.ts";
import type { BenchResults } from "../results.ts";
import { type Column, NOTHING } from "./columns.ts";
import { type Comparison, comparisonsOf } from "./comparisons.ts";
import { type CutsTable, cutText } from "./cuts.ts";
import { describeMachine, INTERRUPTED } from "./describe.ts";
import type { Row } from "./rows.ts";

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
 * What was measured: for each comparison its settings, every cut that was tried, the strategies a row each, and their
 * partitions.
 */
export function resultsTable(results: BenchResults, options: TableOptions = {}): string {
  const comparisons = comparisonsOf(results);
  if (comparisons.length === 0) return "Nothing was measured.\n";
  const terminal = Deno.stdout.isTerminal();
  const paint = painter(options.colour ?? (terminal && !Deno.noColor));
  const width = options.columns ?? (terminal ? Deno.consoleSize().columns : MAX_COLUMNS);
  const lines = comparisons.flatMap((comparison, i) => [
    ...(i === 0 ? [] : [""]),
    comparison.settings,
    comparison.devices,
    describeMachine(results.machine),
    ...(results.interrupted ? [INTERRUPTED] : []),
    ...(comparison.cuts ? ["", cutsText(comparison.cuts, paint), ...comparison.cuts.notes] : []),
    ...(comparison.rows.length > 0 ? ["", ...strategiesText(comparison, width, paint)] : []),
  ]);
  return lines.join("\n").replaceAll(/ +$/gm, "") + "\n";
}

/** Writes text in a style, or as it is. */
type Paint = (format: Parameters<typeof styleText>[0], text: string) => string;

function painter(colour: boolean): Paint {
  return (format, text) => colour ? styleText(format, text, { validateStream: false }) : text;
}

function strategiesText(comparison: Comparison, width: number, paint: Paint): string[] {
  let columns = comparison.columns.filter((column) => !column.pageOnly);
  let table = draw(comparison, columns, paint);
  while (lineWidth(table) > width) {
    const ranked = columns.filter((column) => column.rank !== undefined);
    if (ranked.length === 0) break;
    const least = ranked.reduce((a, b) => a.rank! < b.rank! ? a : b);
    columns = columns.filter((column) => column !== least);
    table = draw(comparison, columns, paint);
  }
  return [
    table,
    "",
    comparison.verdict === "gain"
      ? "gain: against sequential in the same round, median over rounds; +100 % is twice as fast"
      : "speedup: against single in the same round, median over rounds; loss and IoU: of images that were held out",
    ...partitions(comparison.rows),
  ];
}

/** Partitions down, split sizes across, the best in bold. */
function cutsText({ partitions, splitSizes, cells }: CutsTable, paint: Paint): string {
  const heads = splitSizes.map((size, i) => `${i === 0 ? "split size " : ""}${size}`);
  const table = plainTable(
    ["partition", ...heads].map((head) => paint("bold", head)),
    ["left", ...heads.map(() => "right" as const)],
    GAP,
  );
  partitions.forEach((partition, row) => {
    table.push([
      partition,
      ...cells[row]!.map((cell) => {
        if (!cell) return NOTHING;
        return cell.best ? paint("bold", `*${cutText(cell)}`) : cutText(cell);
      }),
    ]);
  });
  return underlined(table.toString(), 1, paint);
}

function draw(comparison: Comparison, columns: readonly Column[], paint: Paint): string {
  const table = plainTable(
    columns.map(({ title, unit }) => `${paint("bold", title)}\n${paint("dim", unit)}`),
    columns.map(({ text }) => text ? "left" : "right"),
    GAP,
  );
  for (const row of comparison.rows) {
    table.push(columns.map((column) => {
      const cell = column.title === "partition" ? shortPartition(row) : column.cell(row);
      if (column.title !== comparison.verdict || row.kind === "single") return cell;
      return paint(row.result.gainPercent < 0 ? "red" : "green", cell);
    }));
  }
  return underlined(table.toString(), 2, paint);
}

/** A rule below the lines of the heading. */
function underlined(table: string, headLines: number, paint: Paint): string {
  const lines = table.split("\n");
  lines.splice(headLines, 0, paint("dim", "─".repeat(lineWidth(table))));
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
