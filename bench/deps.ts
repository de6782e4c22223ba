/**
 * The npm packages that only the benchmark's report needs, with their versions in full. They cost a tenth
 * of a second to load, and the plots' three more: import `report/` when there is something to report.
 * @module
 */
import type * as Core from "npm:echarts@6.1.0/core";
import type * as Png from "npm:fast-png@8.0.0";

export { html, raw } from "npm:hono@4.13.19/html";
export type { EChartsCoreOption } from "npm:echarts@6.1.0/core";
export type {
  CustomSeriesRenderItemAPI,
  CustomSeriesRenderItemParams,
  CustomSeriesRenderItemReturn,
} from "npm:echarts@6.1.0";

/** Loads those parts of Apache ECharts that the plots use, on the first call. */
export async function loadECharts(): Promise<typeof Core> {
  const [core, charts, components, { SVGRenderer }] = await Promise.all([
    import("npm:echarts@6.1.0/core"),
    import("npm:echarts@6.1.0/charts"),
    import("npm:echarts@6.1.0/components"),
    import("npm:echarts@6.1.0/renderers"),
  ]);
  const { BarChart, CustomChart, HeatmapChart, LineChart } = charts;
  const { GraphicComponent, GridComponent, LegendComponent, MarkLineComponent, TitleComponent } = components;
  core.use([BarChart, CustomChart, HeatmapChart, LineChart, SVGRenderer]);
  core.use([GraphicComponent, GridComponent, LegendComponent, MarkLineComponent, TitleComponent]);
  core.use([components.VisualMapContinuousComponent]);
  return core;
}

/** Loads the writer of PNG files: the library that also reads them. */
export async function loadPngEncoder(): Promise<typeof Png.encode> {
  return (await import("npm:fast-png@8.0.0")).encode;
}
