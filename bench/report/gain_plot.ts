/** The gain of each strategy against training on one device, as the published figure draws it. @module */
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemReturn } from "../deps.ts";
import type { PublishedGain } from "../references.ts";
import type { StepResults } from "../results.ts";
import { axis, COLOURS, drawChart, FONT, HATCH, INK, legend } from "./chart.ts";
import type { Comparison } from "./comparisons.ts";
import type { Row } from "./rows.ts";

/** Whose figure a bar is. */
type Owner = "Stagger, this machine" | "peer, this machine" | "published, other hardware";

interface Bar {
  readonly owner: Owner;
  readonly label: string;
  readonly gain: number;
  /** The least and the greatest gain of a round, where there were several. */
  readonly spread?: readonly [low: number, high: number];
}

interface Group {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const LOOKS: Readonly<Record<Owner, Record<string, unknown>>> = {
  "Stagger, this machine": { color: COLOURS.blue },
  "peer, this machine": { color: COLOURS.orange },
  "published, other hardware": { color: "#c9c9c9", decal: HATCH },
};

const BAND = 84; // pixels a bar has, as the others below
const MIN_BANDS = 8; // so that the texts above find room
const HEIGHT = 520;
const GRID = { left: 76, top: 144, right: 24, bottom: 66 };
const FONT_SIZE = 13;
const LABEL = 12; // characters in a line of a bar's label

/** An SVG of bars grouped by strategy: ours, then the published ones beside them, then peers. */
export function gainPlot(comparison: Comparison): Promise<string> {
  const { title, reference, batch, devices } = comparison;
  const groups = groupsOf(comparison);
  const slots = groups.flatMap(({ bars }, i): (Bar | undefined)[] =>
    i === 0 ? [...bars] : [undefined, ...bars]
  );
  const width = GRID.left + GRID.right + BAND * Math.max(MIN_BANDS, slots.length);
  const band = (width - GRID.left - GRID.right) / Math.max(1, slots.length);
  const owners = (Object.keys(LOOKS) as Owner[]).filter((owner) => slots.some((bar) => bar?.owner === owner));
  return drawChart({
    title: `${title}: gain in speed against ${reference} training`,
    subtitle:
      `${batch}, ${devices}\nabove 0 is faster, +100 % is twice as fast; whiskers: the slowest and the fastest round`,
    width,
    height: HEIGHT,
    grid: GRID,
  }, {
    legend: legend({ left: 12, top: 80, data: owners }),
    graphic: groups.map(({ title }, i) => groupTitle(title, i, groups, band)),
    xAxis: axis({
      type: "category",
      data: slots.map((bar) => wrap(bar?.label ?? "")),
      position: "bottom",
      axisLine: { show: false, onZero: false },
      axisLabel: { interval: 0, fontSize: 12, lineHeight: 15 },
    }),
    yAxis: axis({
      type: "value",
      name: "gain in percent",
      nameLocation: "middle",
      nameGap: 50,
      boundaryGap: ["8%", "8%"], // room for the values
      axisLabel: { formatter: withSign },
    }),
    series: [
      ...owners.map((owner, i) => ({
        name: owner,
        type: "bar",
        silent: true,
        barWidth: "64%",
        barGap: "-100%",
        itemStyle: LOOKS[owner],
        data: slots.map((bar) => bar?.owner === owner ? bar.gain : "-"),
        markLine: i > 0 ? undefined : zeroLine(),
      })),
      values(slots),
    ],
  });
}

function groupsOf({ rows, published }: Comparison): Group[] {
  const single = rows.find((row) => row.kind === "single")?.result;
  const ours = (kind: Row["kind"], owner: Owner) =>
    rows.filter((row) => row.kind === kind && Number.isFinite(row.result.gainPercent))
      .map(({ short, result }): Bar => ({
        owner,
        label: kind === "modelParallel" ? "Stagger" : short,
        gain: result.gainPercent,
        spread: spreadOf(result, single),
      }));
  const theirs = (strategy: PublishedGain["strategy"]) =>
    published.filter((gain) => gain.strategy === strategy).map(({ label, gainPercent }): Bar => ({
      owner: "published, other hardware",
      label,
      gain: gainPercent,
    }));
  const group = (title: string, kind: PublishedGain["strategy"]): Group => ({
    title,
    bars: [...ours(kind, "Stagger, this machine"), ...theirs(kind)],
  });
  return [
    group("data parallel", "dataParallel"),
    group("model parallel", "modelParallel"),
    group("pipeline", "pipeline"),
    { title: "peers", bars: ours("peer", "peer, this machine") },
  ].filter(({ bars }) => bars.length > 0);
}

function spreadOf(result: StepResults, single?: StepResults): Bar["spread"] {
  const gains = result.rounds.flatMap((seconds, i) => {
    const gain = ((single?.rounds[i] ?? NaN) / seconds - 1) * 100;
    return Number.isFinite(gain) ? [gain] : [];
  });
  return gains.length < 2 ? undefined : [Math.min(...gains), Math.max(...gains)];
}

/** A group's title above its bars, on a line as wide as they are. */
function groupTitle(
  title: string,
  index: number,
  groups: readonly Group[],
  band: number,
): Record<string, unknown> {
  const before = groups.slice(0, index).reduce((sum, group) => sum + group.bars.length + 1, 0);
  const x = GRID.left + before * band;
  const width = groups[index]!.bars.length * band;
  return {
    type: "group",
    silent: true,
    children: [
      {
        type: "text",
        style: {
          text: title,
          x: x + width / 2,
          y: GRID.top - 28,
          fill: INK,
          font: `600 14px ${FONT}`,
          align: "center",
        },
      },
      {
        type: "line",
        shape: { x1: x + 8, y1: GRID.top - 8, x2: x + width - 8, y2: GRID.top - 8 },
        style: { stroke: INK, opacity: 0.4, lineWidth: 1 },
      },
    ],
  };
}

function zeroLine(): Record<string, unknown> {
  return {
    silent: true,
    symbol: "none",
    label: { show: false },
    lineStyle: { color: INK, type: "solid", width: 1.2 },
    data: [{ yAxis: 0 }],
  };
}

/** Whiskers, and each bar's value beyond its end. */
function values(slots: readonly (Bar | undefined)[]): Record<string, unknown> {
  const bars = slots.flatMap((bar, slot) => bar === undefined ? [] : [{ ...bar, slot }]);
  return {
    type: "custom",
    silent: true,
    z: 5,
    // All three count for the axis's range, so that whiskers stay inside.
    encode: { x: 0, y: [1, 2, 3] },
    data: bars.map(({ slot, gain, spread }) => [slot, gain, spread?.[0] ?? gain, spread?.[1] ?? gain]),
    renderItem(_: unknown, api: CustomSeriesRenderItemAPI) {
      const gain = Number(api.value(1));
      const [x, low] = api.coord([api.value(0), api.value(2)]) as [number, number];
      const [, high] = api.coord([api.value(0), api.value(3)]) as [number, number];
      const [, end] = api.coord([api.value(0), gain]) as [number, number];
      const above = gain >= 0;
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: "line",
        shape: { x1, y1, x2, y2 },
        style: { stroke: INK, lineWidth: 1.4, opacity: 0.85 },
      });
      const whisker = low === high
        ? []
        : [line(x, low, x, high), line(x - 5, low, x + 5, low), line(x - 5, high, x + 5, high)];
      return {
        type: "group",
        children: [...whisker, {
          type: "text",
          style: {
            text: `${withSign(Math.round(gain))} %`,
            x,
            y: above ? Math.min(high, end) - 6 : Math.max(low, end) + 6,
            align: "center",
            verticalAlign: above ? "bottom" : "top",
            fill: INK,
            font: `600 ${FONT_SIZE}px ${FONT}`,
          },
        }],
      } as CustomSeriesRenderItemReturn;
    },
  };
}

function withSign(value: number): string {
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value)}`;
}

function wrap(label: string): string {
  return label.split(" ").reduce((lines, word) => {
    const last = lines.length - lines.lastIndexOf("\n") - 1;
    return lines === "" ? word : `${lines}${last + 1 + word.length > LABEL ? "\n" : " "}${word}`;
  }, "");
}
