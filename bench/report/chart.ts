/** How Stagger's plots look, and the one place that draws them: an ECharts option becomes an SVG. @module */
import { type EChartsCoreOption, loadECharts } from "../deps.ts";

/** Colour of text and lines: that of the text around the plot, so that light and dark pages both work. */
export const INK = "currentColor";

/** Okabe and Ito's colours, told apart by colour-blind readers too. */
export const COLOURS = {
  orange: "#e69f00",
  sky: "#56b4e9",
  green: "#009e73",
  yellow: "#f0e442",
  blue: "#0072b2",
  red: "#d55e00",
  pink: "#cc79a7",
  grey: "#999999",
} as const;

/** Thin slanted lines over a fill: what is not ours, or not work. */
export const HATCH = {
  symbol: "rect",
  color: "rgba(118, 118, 118, 0.9)",
  dashArrayX: [1, 0],
  dashArrayY: [1.5, 4],
  rotation: -Math.PI / 4,
} as const;

/** Names fonts that the reader has: none is fetched. */
export const FONT = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif";

/** What surrounds the data of a plot. */
export interface Frame {
  readonly title: string;
  readonly subtitle?: string;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** Pixels left of, above, right of and below the data. */
  readonly grid: {
    readonly left: number;
    readonly top: number;
    readonly right: number;
    readonly bottom: number;
  };
}

/** Draws `option` within `frame`. The SVG has no background and takes its ink from the text around it. */
export async function drawChart(frame: Frame, option: EChartsCoreOption): Promise<string> {
  const { init } = await loadECharts();
  const { title, subtitle, width, height, grid } = frame;
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  try {
    chart.setOption({
      animation: false,
      textStyle: { color: INK, fontFamily: FONT },
      title: {
        text: title,
        subtext: subtitle,
        left: 12,
        top: 8,
        itemGap: 6,
        textStyle: { color: INK, fontSize: 16, fontWeight: 600 },
        subtextStyle: { color: INK, fontSize: 12, lineHeight: 17, opacity: 0.75 },
      },
      grid: { ...grid, containLabel: false },
      ...option,
    });
    return chart.renderToSVGString().replace(
      "<svg ",
      `<svg role="img" aria-label="${escapeAttribute(title)}" `,
    );
  } finally {
    chart.dispose(); // its animation loop would keep the process alive
  }
}

/** The SVG as a file of its own: with a background, dark where the viewer prefers that. */
export function standalone(svg: string): string {
  const style = "svg{color:#1c2024}.paper{fill:#fff}" +
    "@media (prefers-color-scheme:dark){svg{color:#e8eaed}.paper{fill:#16191d}}";
  const paper = `<style>${style}</style><rect class="paper" width="100%" height="100%"/>`;
  return svg.replace(/<svg [^>]*>/, (tag) => tag + paper);
}

/** An axis in the plot's ink. */
export function axis(more: Record<string, unknown>): Record<string, unknown> {
  const { axisLabel, ...rest } = more;
  return {
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: INK, opacity: 0.13 } },
    nameTextStyle: { color: INK },
    axisLabel: { color: INK, ...axisLabel as Record<string, unknown> },
    ...rest,
  };
}

/** A legend in the plot's ink; its wide gaps make up for fonts wider than those that ECharts reckons with. */
export function legend(more: Record<string, unknown>): Record<string, unknown> {
  return {
    textStyle: { color: INK, fontSize: 12 },
    itemWidth: 16,
    itemHeight: 12,
    itemGap: 40,
    selectedMode: false,
    ...more,
  };
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
