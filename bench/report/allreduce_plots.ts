/** Plots of summing among workers: as workers grow, and as sums grow. @module */
import type { AllreduceCase, AllreduceResults, ContestantName } from "../allreduce/results.ts";
import { bytesName } from "../allreduce/words.ts";
import { axis, COLOURS, drawChart, INK, legend } from "./chart.ts";

const WIDTH = 900; // pixels, as the others below
const HEIGHT = 420;
const GRID = { left: 76, top: 92, right: 190, bottom: 56 };

/** Name, colour, symbol and kind of a line. */
const LINES: Readonly<Record<ContestantName, readonly [string, string, string, string]>> = {
  ring: ["ring", COLOURS.blue, "diamond", "solid"],
  parameterServer: ["parameter server", COLOURS.red, "rect", "solid"],
  gloo: ["gloo (PyTorch)", COLOURS.orange, "emptyRect", "dashed"],
  memcpy: ["memcpy", COLOURS.grey, "emptyCircle", "dotted"],
};

/** The size of which the plot over workers shows most points; of several the one nearest to 100 MB. */
export function plottedBytes(cases: readonly AllreduceCase[]): number | undefined {
  const counts = Map.groupBy(cases, ({ bytes }) => bytes);
  const most = Math.max(0, ...[...counts.values()].map((group) => group.length));
  const distance = (bytes: number) => Math.abs(Math.log(bytes / 1e8));
  return [...counts].filter(([, group]) => group.length === most).map(([bytes]) => bytes)
    .sort((a, b) => distance(a) - distance(b))[0];
}

/** Milliseconds of a sum against the number of workers, at one size. */
export function workersPlot({ cases, settings }: AllreduceResults): Promise<string> {
  const bytes = plottedBytes(cases)!;
  const points = cases.filter((one) => one.bytes === bytes).sort((a, b) => a.workers - b.workers);
  return draw(
    {
      title: "Ring against parameter server as workers grow",
      subtitle: `milliseconds until all have the sum of ${bytesName(bytes)} from each worker, ` +
        `on ${settings.cores} cores\nless is better`,
      x: "workers",
      y: "milliseconds",
    },
    { type: "value", min: "dataMin", max: "dataMax", interval: 1 },
    { type: "value", min: 0 },
    (name) => points.map(({ workers, timings }) => [workers, timings[name] && timings[name].seconds * 1000]),
  );
}

/** GB/s against the size of the sum, for the fewest workers. */
export function sizesPlot({ cases, settings }: AllreduceResults): Promise<string> {
  const workers = Math.min(...cases.map((one) => one.workers));
  const points = cases.filter((one) => one.workers === workers).sort((a, b) => a.bytes - b.bytes);
  return draw(
    {
      title: `Speed of a sum between ${workers} workers as it grows`,
      subtitle: `GB/s: bytes that each worker contributes by the time until all have the sum, ` +
        `on ${settings.cores} cores\nmore is better; what is small lies in the cores' caches`,
      x: "bytes of each worker",
      y: "GB/s",
    },
    { type: "log", axisLabel: { formatter: bytesName } },
    { type: "log" },
    (name) => points.map(({ bytes, timings }) => [bytes, timings[name]?.gigabytesPerSecond]),
  );
}

/** A line for each contestant that was measured. */
function draw(
  text: { title: string; subtitle: string; x: string; y: string },
  xAxis: Record<string, unknown>,
  yAxis: Record<string, unknown>,
  pointsOf: (name: ContestantName) => [x: number, y: number | undefined][],
): Promise<string> {
  const { title, subtitle } = text;
  const measured = (Object.keys(LINES) as ContestantName[]).map((name) =>
    [name, pointsOf(name).filter(([, y]) => y !== undefined)] as const
  ).filter(([, points]) => points.length > 0);
  return drawChart({ title, subtitle, width: WIDTH, height: HEIGHT, grid: GRID }, {
    legend: legend({
      orient: "vertical",
      left: WIDTH - GRID.right + 24,
      top: GRID.top,
      itemWidth: 28,
      itemGap: 12,
    }),
    xAxis: axis({
      name: text.x,
      nameLocation: "middle",
      nameGap: 30,
      axisLine: { show: true, lineStyle: { color: INK, opacity: 0.4 } },
      splitLine: { show: false },
      ...xAxis,
    }),
    yAxis: axis({ name: text.y, nameLocation: "middle", nameGap: 52, ...yAxis }),
    series: measured.map(([name, data]) => {
      const [label, color, symbol, type] = LINES[name];
      return {
        name: label,
        type: "line",
        silent: true,
        symbol,
        symbolSize: 9,
        itemStyle: { color },
        lineStyle: { color, width: 2, type },
        data,
      };
    }),
  });
}
