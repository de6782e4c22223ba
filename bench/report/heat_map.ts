/** Every partition with every split size as a map of colours. @module */
import type { CutsTable } from "./cuts.ts";
import { cutText } from "./cuts.ts";
import { axis, drawChart, INK } from "./chart.ts";

const CELL = { width: 148, height: 34 }; // pixels, as the others below
const GRID = { top: 104, right: 24, bottom: 52 };
const CHARACTER = 7; // width of a character of a partition's name
const FONT_SIZE = 12;

/** From the fastest to the slowest: told apart by lightness alone. */
const SCALE = ["#08306b", "#2171b5", "#6baed6", "#c6dbef", "#f7fbff"];
/** How many times the fastest's seconds have the lightest colour, or more: most of the scale is for those in question. */
const RANGE = 2;
/** Share of the scale up to which a cell is dark. */
const DARK = 0.45;
const LIGHT_TEXT = "#ffffff";
const DARK_TEXT = "#111111";
const BEST = "#e69f00";

/** An SVG: partitions down, split sizes across, the best framed. */
export function heatMap(table: CutsTable, title: string): Promise<string> {
  const { partitions, splitSizes, cells, measured } = table;
  const points = cells.flatMap((row, y) =>
    row.flatMap((cell, x) => {
      const seconds = cell?.measured ?? (measured ? undefined : cell?.predicted);
      return cell && seconds !== undefined ? [{ x, y, seconds, cell }] : [];
    })
  );
  const fastest = Math.min(...points.map(({ seconds }) => seconds));
  const left = 40 + CHARACTER * Math.max(...partitions.map(({ length }) => length));
  return drawChart({
    title,
    subtitle: `${
      measured ? "seconds per step; in brackets what was predicted" : "predicted seconds per step"
    }\nthe darker, the faster: from the best, framed, to ${RANGE} times its time or more`,
    width: left + Math.max(520, CELL.width * splitSizes.length) + GRID.right,
    height: GRID.top + CELL.height * partitions.length + GRID.bottom,
    grid: { ...GRID, left },
  }, {
    visualMap: {
      type: "continuous",
      show: false,
      min: fastest,
      max: fastest * RANGE,
      dimension: 2,
      inRange: { color: SCALE },
    },
    xAxis: axis({
      type: "category",
      data: splitSizes.map(String),
      name: "samples in a micro-batch",
      nameLocation: "middle",
      nameGap: 28,
      splitLine: { show: false },
    }),
    yAxis: axis({ type: "category", inverse: true, data: partitions, splitLine: { show: false } }),
    series: [{
      type: "heatmap",
      silent: true,
      label: { show: true, fontSize: FONT_SIZE },
      itemStyle: { borderColor: INK, borderWidth: 0 },
      data: points.map(({ x, y, seconds, cell }) => ({
        value: [x, y, seconds],
        label: {
          color: (seconds / fastest - 1) / (RANGE - 1) < DARK ? LIGHT_TEXT : DARK_TEXT,
          fontWeight: cell.best ? 700 : 400,
          formatter: cutText(cell),
        },
        itemStyle: cell.best ? { borderColor: BEST, borderWidth: 3 } : {},
      })),
    }],
  });
}
