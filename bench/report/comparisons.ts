/** The comparisons of a run, as tables, plots and the page take them. @module */
import { PUBLISHED_RESNET50, PUBLISHED_UNET, type PublishedGain } from "../references.ts";
import type { BenchResults } from "../results.ts";
import { type Column, COLUMNS, UNET_COLUMNS } from "./columns.ts";
import { type CutsTable, cutsTable } from "./cuts.ts";
import { describeBatch, describeDevices, describeResnet50, describeUnet } from "./describe.ts";
import { type Row, rowsOf, unetRowsOf } from "./rows.ts";

/** One comparison of strategies. */
export interface Comparison {
  readonly key: "resnet50" | "unet";
  /** The model. */
  readonly title: string;
  /** What the gain is against: the name of the first strategy. */
  readonly reference: string;
  /** How it ran, in a line. */
  readonly settings: string;
  /** Images and batch, in a few words. */
  readonly batch: string;
  readonly devices: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  /** Title of the column whose figure is good or bad. */
  readonly verdict: string;
  readonly published: readonly PublishedGain[];
  /** Before the names of its plots' files. */
  readonly prefix: string;
  /** Partitions and split sizes that were tried or predicted. */
  readonly cuts?: CutsTable;
}

/** What was compared; a comparison that measured nothing is left out. */
export function comparisonsOf(results: BenchResults): Comparison[] {
  const { resnet50, unet } = results;
  const list: Comparison[] = [];
  if (resnet50) {
    list.push({
      key: "resnet50",
      title: "ResNet50",
      reference: "sequential",
      settings: describeResnet50(resnet50),
      batch: describeBatch(resnet50),
      devices: describeDevices(resnet50.settings.devices, results),
      rows: rowsOf(resnet50),
      columns: COLUMNS,
      verdict: "gain",
      published: PUBLISHED_RESNET50,
      prefix: "",
    });
  }
  if (unet) {
    const { size, batch, devices } = unet.settings;
    list.push({
      key: "unet",
      title: "U-Net",
      reference: "single",
      settings: describeUnet(unet),
      batch: `${size}x${size} images, batch ${batch}`,
      devices: describeDevices(devices, results),
      rows: unetRowsOf(unet),
      columns: UNET_COLUMNS,
      verdict: "speedup",
      published: PUBLISHED_UNET,
      prefix: "unet-",
      ...(unet.pipeline?.table.length ? { cuts: cutsTable(unet.pipeline.table) } : {}),
    });
  }
  return list.filter(({ rows, cuts }) => rows.length > 0 || cuts);
}
