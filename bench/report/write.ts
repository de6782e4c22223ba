/** Writes a report: the results as JSON, the page, and each plot as a file of its own. @module */
import { dirname, join } from "node:path";
import type { AllreduceResults } from "../allreduce/results.ts";
import type { BenchResults, ReportExtras, Timeline } from "../results.ts";
import { sizesPlot, workersPlot } from "./allreduce_plots.ts";
import { standalone } from "./chart.ts";
import { type Comparison, comparisonsOf } from "./comparisons.ts";
import { cutsCsv } from "./cuts.ts";
import { encodeExamples } from "./examples.ts";
import { gainPlot } from "./gain_plot.ts";
import { heatMap } from "./heat_map.ts";
import { type Plot, reportHtml } from "./html.ts";
import { roundsPlot } from "./rounds_plot.ts";
import { timelinePlot } from "./timeline_plot.ts";

/** Where a report lies. */
export interface ReportPaths {
  readonly json: string;
  readonly html: string;
  readonly plots: readonly string[];
  /** The table of partitions and split sizes, where there is one. */
  readonly csv?: string;
}

/**
 * Writes `results.json`, `report.html`, the plots' SVGs and the table of cuts as CSV to `directory`, which is made if it is missing.
 * A file is replaced as a whole or not at all.
 *
 * @param copyPath where a copy of the JSON goes
 */
export async function writeReport(
  results: BenchResults,
  extras: ReportExtras,
  directory: string,
  copyPath?: string,
): Promise<ReportPaths> {
  // The figures first: a plot that fails must not lose them.
  const json = join(directory, "results.json");
  const figures = JSON.stringify(results, null, 2) + "\n";
  for (const path of copyPath === undefined ? [json] : [json, copyPath]) await writeWhole(path, figures);
  const cuts = results.unet?.pipeline?.table ?? [];
  const csv = cuts.length > 0 ? join(directory, "unet-cuts.csv") : undefined;
  if (csv) await writeWhole(csv, cutsCsv(cuts));
  const plots: (Plot & { file: string })[] = [];
  for (const comparison of comparisonsOf(results)) {
    plots.push(...await drawAll(comparison, extras.timelines?.[comparison.key] ?? []));
  }
  if (results.allreduce?.cases.length) plots.push(...await drawAllreduce(results.allreduce));
  const html = join(directory, "report.html");
  await writeWhole(html, reportHtml(results, plots, await encodeExamples(extras.examples ?? [])));
  const paths = plots.map(({ file }) => join(directory, file));
  await Promise.all(plots.map(({ svg }, i) => writeWhole(paths[i]!, standalone(svg))));
  return { json, html, plots: paths, ...(csv ? { csv } : {}) };
}

/**
 * Makes sure, before any work, that a report can be written.
 *
 * @throws {Error} naming the option, what is wrong and the remedy
 */
export async function checkPlaces(directory: string, jsonPath: string | undefined): Promise<void> {
  const places = [["--output", directory, join(directory, "results.json")]];
  if (jsonPath !== undefined) places.push(["--json", jsonPath, jsonPath]);
  for (const [option, value, path] of places) {
    try {
      await Deno.mkdir(dirname(path!), { recursive: true });
      if ((await Deno.stat(path!).catch(() => undefined))?.isDirectory) throw new Error("it is a folder");
      const probe = `${path}.${crypto.randomUUID()}.part`;
      await Deno.writeTextFile(probe, "");
      await Deno.remove(probe);
    } catch (error) {
      const what = option === "--json" ? "a file" : "a folder";
      throw new Error(
        `Cannot write to ${option} ${value}: ${reason(error)}; give ${what} that may be written`,
        { cause: error },
      );
    }
  }
}

/** Deno speaks of permissions where it keeps a place for itself, such as /proc, though all that are asked for are there. */
function reason(error: unknown): string {
  if (error instanceof Deno.errors.NotCapable) return "Deno keeps it from programs";
  return (error as Error).message.replace(/: (mkdir|open|rename|writefile|stat) .*$/, "");
}

async function drawAll(
  comparison: Comparison,
  timelines: readonly Timeline[],
): Promise<(Plot & { file: string })[]> {
  const { key, title, reference, rows, cuts, prefix } = comparison;
  const plots: (Plot & { file: string })[] = [];
  const add = (file: string, plot: Omit<Plot, "comparison">) =>
    plots.push({ ...plot, comparison: key, file: prefix + file });
  if (cuts) {
    add("cuts.svg", {
      title: "Partitions and split sizes as a map",
      svg: await heatMap(cuts, `${title}: partitions and split sizes`),
      caption: cuts.measured
        ? "Each cut was measured in turn with training on one device, so that the machine's drift does not decide."
        : "As the cost model predicts them; none was measured.",
    });
  }
  if (rows.some((row) => row.kind !== "single")) {
    add("gain.svg", {
      title: `Gain against ${reference} training`,
      svg: await gainPlot(comparison),
      caption:
        "Bars are medians over rounds, whiskers the slowest and the fastest round. Hatched bars were " +
        "published for other hardware and other settings; see below.",
    });
  }
  for (const timeline of timelines) {
    add(`timeline-${timeline.schedule.replaceAll(/[^\w.-]+/g, "-")}.svg`, {
      title: `One step of ${timeline.schedule}`,
      svg: await timelinePlot(timeline),
      caption:
        "As it ran, to scale: a row is a device, a block an action with its micro-batch, hatched is waiting.",
    });
  }
  if (rows.some((row) => row.result.rounds.length > 1)) {
    add("rounds.svg", {
      title: "Rounds",
      svg: await roundsPlot(rows),
      caption:
        "Strategies take turns within a round. Where all lines rise or fall together, the machine did.",
    });
  }
  return plots;
}

async function drawAllreduce(results: AllreduceResults): Promise<(Plot & { file: string })[]> {
  return [{
    comparison: "allreduce",
    file: "allreduce-workers.svg",
    title: "Ring against parameter server",
    svg: await workersPlot(results),
    caption: "One server sums what all others hand over; around a ring, each sums a share.",
  }, {
    comparison: "allreduce",
    file: "allreduce-sizes.svg",
    title: "Speed of sums",
    svg: await sizesPlot(results),
    caption: "Short sums take as long as it takes to await each other; long ones what memory takes.",
  }];
}

async function writeWhole(path: string, text: string): Promise<void> {
  await Deno.mkdir(dirname(path), { recursive: true });
  const part = `${path}.${crypto.randomUUID()}.part`;
  try {
    await Deno.writeTextFile(part, text);
    await Deno.rename(part, path);
  } catch (error) {
    await Deno.remove(part).catch(() => {}); // it may not be there
    throw error;
  }
}
