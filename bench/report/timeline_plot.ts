/** One step as it ran: a row a device, a block an action, to scale. @module */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "../deps.ts";
import type { CustomSeriesRenderItemReturn } from "../deps.ts";
import type { Timeline, TimelineEvent, TimelineRow } from "../results.ts";
import { axis, COLOURS, drawChart, FONT, HATCH, INK, legend } from "./chart.ts";

/** How one kind of action is drawn. */
interface Kind {
  readonly name: string;
  readonly fill: string;
  /** Colour of the text on it. */
  readonly text: string;
}

const DARK = "#111111";
const EDGE = "rgba(255, 255, 255, 0.8)"; // between blocks of one colour
const KINDS: Readonly<Record<string, Kind>> = {
  wait: { name: "waiting", fill: "rgba(153, 153, 153, 0.22)", text: INK },
  F: { name: "F forward", fill: COLOURS.blue, text: "#ffffff" },
  B: { name: "B backward to the inputs", fill: COLOURS.orange, text: DARK },
  W: { name: "W backward to the weights", fill: COLOURS.green, text: DARK },
  BW: { name: "BW backward, both at once", fill: COLOURS.red, text: DARK },
  R: { name: "R gradients added up", fill: COLOURS.sky, text: DARK },
  U: { name: "U update of the weights", fill: COLOURS.pink, text: DARK },
};

const WIDTH = 1180; // pixels, as the others below
const ROW = 74;
const BLOCK = 46;
const GRID = { left: 96, top: 104, right: 28, bottom: 52 };
const FONT_SIZE = 11;
const CHARACTER = 6.6; // width of a character at that size

/** An SVG of one step. */
export function timelinePlot(timeline: Timeline): Promise<string> {
  const { rows, schedule } = timeline;
  const events = rows.flatMap((row) => row.events);
  const span = Math.max(1, ...events.map((event) => event.end));
  const kinds = [...new Set([...Object.keys(KINDS), ...events.map((event) => event.kind)])]
    .filter((kind) => events.some((event) => event.kind === kind));
  const waiting = total(events, (kind) => kind === "wait") / (span * Math.max(1, rows.length));
  return drawChart({
    title: `${schedule}: one step on ${rows.length} ${rows.length === 1 ? "device" : "devices"}`,
    subtitle: `${span.toFixed(0)} ms, ${
      (waiting * 100).toFixed(0)
    } % of the devices' time spent waiting; the number in a block is its micro-batch`,
    width: WIDTH,
    height: GRID.top + ROW * rows.length + GRID.bottom,
    grid: GRID,
  }, {
    legend: legend({ left: 12, top: 66 }),
    xAxis: axis({
      type: "value",
      min: 0,
      max: span,
      name: "milliseconds from the step's start",
      nameLocation: "middle",
      nameGap: 28,
      axisLabel: { showMaxLabel: false },
      splitLine: { showMaxLine: false, lineStyle: { color: INK, opacity: 0.13 } },
      axisLine: { show: true, lineStyle: { color: INK, opacity: 0.4 } },
    }),
    yAxis: axis({
      type: "category",
      inverse: true,
      data: rows.map((row) => row.device),
      splitLine: { show: false },
      axisLabel: {
        fontSize: 13,
        lineHeight: 18,
        formatter: (device: string, index: number) =>
          `{device|${device}}\n{busy|${busy(rows[index]!, span)} % busy}`,
        rich: { device: { fontSize: 13, fontWeight: 600, color: INK }, busy: { fontSize: 11, color: INK } },
      },
    }),
    series: kinds.map((kind) => seriesOf(kind, timeline, span)),
  });
}

function seriesOf(key: string, { rows }: Timeline, span: number): Record<string, unknown> {
  const kind = KINDS[key] ?? { name: key, fill: COLOURS.sky, text: DARK };
  const events = rows.flatMap(({ events }, row) =>
    events.filter((event) => event.kind === key).map((event) => ({ ...event, row }))
  );
  const labels = labelsOf(key, events, (WIDTH - GRID.left - GRID.right) / span);
  const decal = key === "wait" ? HATCH : undefined;
  return {
    name: kind.name,
    type: "custom",
    silent: true,
    clip: true,
    itemStyle: { color: kind.fill, decal },
    encode: { x: [0, 1], y: 2 },
    data: events.map(({ start, end, row }) => [start, end, row]),
    renderItem(params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
      const [x, y] = api.coord([api.value(0), api.value(2)]) as [number, number];
      const [right] = api.coord([api.value(1), api.value(2)]) as [number, number];
      const width = right - x;
      return {
        type: "rect",
        shape: { x, y: y - BLOCK / 2, width, height: BLOCK },
        style: { fill: kind.fill, decal, stroke: EDGE, lineWidth: key === "wait" ? 0 : 1 },
        textConfig: { position: "inside" },
        textContent: {
          style: {
            text: labels[params.dataIndex]!,
            fill: kind.text,
            fontSize: FONT_SIZE,
            fontFamily: FONT,
          },
        },
      } as CustomSeriesRenderItemReturn;
    },
  };
}

/** "F3" where that fits in every block of the kind, else "3" where that fits, else nothing. */
function labelsOf(kind: string, events: readonly TimelineEvent[], pixelsPerMs: number): string[] {
  if (kind === "wait") return events.map(() => "");
  const fits = (text: string, { start, end }: TimelineEvent) => widthOf(text) <= (end - start) * pixelsPerMs;
  const numbers = events.map(({ microBatch, count = 1 }) =>
    microBatch < 0 ? "" : count > 1 ? `${microBatch}–${microBatch + count - 1}` : String(microBatch)
  );
  const full = numbers.map((number) => kind + number);
  if (full.every((text, i) => fits(text, events[i]!))) return full;
  return numbers.map((text, i) => fits(text, events[i]!) ? text : "");
}

/** Pixels that a block needs for a text; W is wide. */
function widthOf(text: string): number {
  return text.length * CHARACTER + (text.includes("W") ? 4 : 0) + 3;
}

function busy(row: TimelineRow, span: number): string {
  return (100 * total(row.events, (kind) => kind !== "wait") / span).toFixed(0);
}

/** Milliseconds of the events of some kinds. */
function total(events: readonly TimelineEvent[], of: (kind: string) => boolean): number {
  return events.reduce((sum, { kind, start, end }) => of(kind) ? sum + end - start : sum, 0);
}
