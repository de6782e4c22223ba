/** Makes a cost model from one profile of a run's devices. @module */
import { byteLengthOf } from "../../ring/dtype.ts";
import type { LayerCost } from "../../stages/balance.ts";
import { estimateCosts } from "../../stages/cost.ts";
import { type CostModel, trainedBytes } from "../cost_model/cost_model.ts";
import { LayerCurves, type LayerPoint } from "../cost_model/layer_curves.ts";
import type { Gauge } from "../gauge.ts";
import { gauge, largestMeasurable, type LayerProfileOptions, measureLayers } from "./layer_profile.ts";

/** Samples that layers are measured with, beside the whole batch. */
const SAMPLES = [1, 4];
/** How often each number of samples has its turn: a machine may be slower at one of them than at the others. */
const TURNS = 2;

/**
 * Measures the layers with few samples and with many, and what is around them. Where the options want estimated
 * costs, these are the layers' shares of what the whole model takes.
 */
export async function profileModel(options: LayerProfileOptions): Promise<CostModel> {
  const { workloads, shape } = options;
  const { graph } = workloads;
  const most = Math.max(1, await largestMeasurable(options, shape.batchSize));
  const sizes = [...SAMPLES.filter((samples) => samples < most), most];
  const gauges = new Map<number, Gauge>();
  for (let turn = 0; turn < TURNS; turn++) {
    for (const samples of sizes) {
      const measured = await gauge(options, samples);
      gauges.set(samples, leastOf(measured, gauges.get(samples)));
    }
  }
  const points: LayerPoint[] = [];
  for (const samples of sizes) {
    const costs = workloads.options.costs === "measured"
      ? await measureLayers(options, samples)
      : estimates(options, samples);
    points.push({ samples, costs: asWhole(costs, gauges.get(samples)!) });
  }
  const all = [...gauges.values()];
  const host = Math.min(...all.map((gauge) => gauge.host));
  const trained = graph.layers.reduce((sum, layer) => sum + trainedBytes(layer), 0);
  return {
    graph,
    curves: new LayerCurves(points),
    sampleBytes: new Map([...workloads.specs(shape, 1)].map(([key, spec]) => [key, byteLengthOf(spec)])),
    hostSeconds: host / 1000,
    secondsPerByteSent: Math.min(...all.map(({ copyPerByte }) => copyPerByte)) / 1000,
    secondsPerByteUpdated: trained === 0
      ? 0
      : Math.max(0, Math.min(...all.map(({ U }) => U)) - host) / 1000 / trained,
  };
}

/** The least of each time. */
function leastOf(a: Gauge, b: Gauge = a): Gauge {
  const least = (part: keyof Gauge) => Math.min(a[part], b[part]);
  return {
    F: least("F"),
    B: least("B"),
    W: least("W"),
    U: least("U"),
    host: least("host"),
    copyPerByte: least("copyPerByte"),
  };
}

function estimates({ workloads, shape }: LayerProfileOptions, samples: number): Record<string, LayerCost> {
  const { graph } = workloads;
  const costs = estimateCosts(graph, workloads.specs(shape, samples));
  return Object.fromEntries(graph.layers.map(({ name }, i) => [name, costs[i]!]));
}

/**
 * Layers' milliseconds as seconds, so that their sums are what the whole took: a layer is measured with clocks between
 * it and the next, and without them the engine overlaps and fuses.
 */
export function asWhole(
  costs: Readonly<Record<string, LayerCost>>,
  whole: Pick<Gauge, "F" | "B" | "W" | "host">,
): Record<string, LayerCost> {
  const all = Object.values(costs);
  const sum = (...parts: (keyof LayerCost)[]) =>
    all.reduce((total, cost) => total + parts.reduce((sum, part) => sum + cost[part], 0), 0);
  const scale = (ms: number, layers: number) =>
    layers > 0 ? Math.max(0, ms - whole.host) / layers / 1000 : 1 / 1000;
  const apart = whole.W > 0;
  const F = scale(whole.F, sum("F"));
  const B = scale(whole.B, apart ? sum("B") : sum("B", "W"));
  const W = apart ? scale(whole.W, sum("W")) : B;
  return Object.fromEntries(
    Object.entries(costs).map(([name, cost]) => [name, { F: cost.F * F, B: cost.B * B, W: cost.W * W }]),
  );
}
