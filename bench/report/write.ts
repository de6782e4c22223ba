/** Writes a report: the results as JSON, the page, and each plot as a file of its own. @module */
import { dirname, join } from "node:path";
import type { BenchResults, Timeline } from "../results.ts";
import { standalone } from "./chart.ts";
import { gainPlot } from "./gain_plot.ts";
import { type Plot, reportHtml } from "./html.ts";
import { roundsPlot } from "./rounds_plot.ts";
import { rowsOf } from "./rows.ts";
import { timelinePlot } from "./timeline_plot.ts";

/** Where a report lies. */
export interface ReportPaths {
  readonly json: string;
  readonly html: string;
  readonly plots: readonly string[];
}

/**
 * Writes `results.json`, `report.html` and the plots' SVGs to `directory`, which is made if it is missing.
 * A file is replaced as a whole or not at all.
 *
 * @param jsonPath where the JSON goes instead
 */
export async function writeReport(
  results: BenchResults,
  timelines: readonly Timeline[],
  directory: string,
  jsonPath: string = join(directory, "results.json"),
): Promise<ReportPaths> {
  // The figures first: a plot that fails must not lose them.
  await writeWhole(jsonPath, JSON.stringify(results, null, 2) + "\n");
  const plots = await drawAll(results, timelines);
  const html = join(directory, "report.html");
  await writeWhole(html, reportHtml(results, plots));
  const paths = plots.map(({ file }) => join(directory, file));
  await Promise.all(plots.map(({ svg }, i) => writeWhole(paths[i]!, standalone(svg))));
  return { json: jsonPath, html, plots: paths };
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
  results: BenchResults,
  timelines: readonly Timeline[],
): Promise<(Plot & { file: string })[]> {
  const plots = [];
  const rows = rowsOf(results.resnet50);
  if (rows.some((row) => row.kind !== "single")) {
    plots.push({
      file: "gain.svg",
      title: "Gain against sequential training",
      svg: await gainPlot(results),
      caption:
        "Bars are medians over rounds, whiskers the slowest and the fastest round. Hatched bars were " +
        "published for other hardware and other settings; see below.",
    });
  }
  for (const timeline of timelines) {
    plots.push({
      file: `timeline-${timeline.schedule.replaceAll(/[^\w.-]+/g, "-")}.svg`,
      title: `One step of ${timeline.schedule}`,
      svg: await timelinePlot(timeline),
      caption:
        "As it ran, to scale: a row is a device, a block an action with its micro-batch, hatched is waiting.",
    });
  }
  if (rows.some((row) => row.result.rounds.length > 1)) {
    plots.push({
      file: "rounds.svg",
      title: "Rounds",
      svg: await roundsPlot(results),
      caption:
        "Strategies take turns within a round. Where all lines rise or fall together, the machine did.",
    });
  }
  return plots;
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
