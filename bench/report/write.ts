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
