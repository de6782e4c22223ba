/** Seconds per step round by round: what the machine's drift did to every strategy alike. @module */
import { axis, COLOURS, drawChart, INK, legend } from "./chart.ts";
import type { Row } from "./rows.ts";

const WIDTH = 1180; // pixels, as the others below
const HEIGHT = 400;
const GRID = { left: 76, top: 76, right: 208, bottom: 52 };

/** Colour and symbol both tell a line apart. */
const LINES = [
  [INK, "circle"],
  [COLOURS.red, "rect"],
  [COLOURS.sky, "triangle"],
  [COLOURS.blue, "diamond"],
  [COLOURS.pink, "emptyCircle"],
  [COLOURS.green, "emptyDiamond"],
  [COLOURS.orange, "emptyRect"],
  [COLOURS.grey, "emptyTriangle"],
  [COLOURS.red, "emptyDiamond"],
  [COLOURS.blue, "emptyRect"],
] as const;

/** An SVG of a line a strategy, a point a round. */
export function roundsPlot(rows: readonly Row[]): Promise<string> {
  const rounds = Math.max(0, ...rows.map((row) => row.result.rounds.length));
  return drawChart({
    title: "Seconds per step, round by round",
    subtitle: "every round runs each strategy once; a gain compares two times of one round, " +
      "so that the machine's drift does not count",
    width: WIDTH,
    height: HEIGHT,
    grid: GRID,
  }, {
    legend: legend({
      orient: "vertical",
      left: WIDTH - GRID.right + 16,
      top: GRID.top,
      itemWidth: 28,
      itemGap: 12,
    }),
    xAxis: axis({
      type: "category",
      data: Array.from({ length: rounds }, (_, i) => String(i + 1)),
      name: "round",
      nameLocation: "middle",
      nameGap: 28,
      axisLine: { show: true, lineStyle: { color: INK, opacity: 0.4 } },
    }),
    yAxis: axis({ type: "value", min: 0, name: "seconds per step", nameLocation: "middle", nameGap: 48 }),
    series: rows.map(lineOf),
  });
}

function lineOf({ name, kind, result }: Row, index: number): Record<string, unknown> {
  const [color, symbol] = LINES[index % LINES.length]!;
  const type = kind === "peer" ? "dashed" : "solid";
  return {
    name,
    type: "line",
    silent: true,
    symbol,
    symbolSize: 8,
    itemStyle: { color },
    lineStyle: { color, width: kind === "single" ? 2.5 : 2, type },
    data: result.rounds.map((seconds) => Number.isFinite(seconds) ? seconds : null),
  };
}
