/** Finds, before any work, what is wrong with the partition and the data that are named. @module */
import { join } from "node:path";
import { blocksOf } from "../stages/blocks.ts";
import { type ModelGraph, modelGraph } from "../stages/graph.ts";
import { type PartitionSpec, resolvePartition } from "../stages/partition.ts";
import { resnet50 } from "../stages/resnet50.ts";
import { unet } from "../stages/unet.ts";
import type { BenchOptions } from "./options.ts";

/** What a folder of data has to have. */
const FOLDERS = {
  resnet50: "a sub-folder of images for each class",
  unet: "sub-folders images and masks, with files of the same names",
} as const;

/** Data that are no folder. */
const NAMED = ["mnist", "digits", "synthetic"];

/**
 * Checks what a comparison is given.
 *
 * @param devices how many there are
 * @throws {Error | RangeError} naming the option, what is expected and the remedy
 */
export async function checkInputs(options: BenchOptions, devices: number): Promise<void> {
  const { command, partition, data, size, enumerate } = options;
  if (command !== "resnet50" && command !== "unet") return;
  if (enumerate && devices < 2) {
    throw new RangeError(
      "Cannot use --enumerate on 1 device: a pipeline needs two or more; name them by --devices",
    );
  }
  if (!NAMED.includes(data)) await checkFolder(command, data);
  if (partition === "auto") return;
  const inputShape: [number, number, number] = [size, size, 3];
  const model = command === "unet" ? unet({ inputShape }) : resnet50({ inputShape });
  try {
    checkCuts(modelGraph(model), partition, devices);
  } finally {
    model.dispose();
  }
}

/** @throws {RangeError} for a partition that the model cannot be cut at */
export function checkCuts(graph: ModelGraph, partition: PartitionSpec, stages: number): void {
  const { layers } = graph;
  const positions = partition.map((cut) =>
    typeof cut === "number" ? cut : layers.findIndex(({ name }) => name === cut || name.startsWith(`${cut}_`))
  );
  const blocks = () => blocksOf(graph).map(({ name }) => name).join(", ");
  const unknown = positions.indexOf(-1);
  if (unknown >= 0) {
    throw new RangeError(
      `Cannot use --partition ${
        partition[unknown]
      }: the model has no such layer or block; its blocks are ${blocks()}`,
    );
  }
  if (partition.length === stages - 1 && positions.some((at, i) => at <= (positions[i - 1] ?? 0))) {
    throw new RangeError(
      `Cannot use --partition ${partition.join(",")}: expected the model's order, and none that begins it; ` +
        `its blocks are ${blocks()}`,
    );
  }
  resolvePartition(graph, partition, stages);
}

/** @throws {Error} if the folder is not there, or lacks what data are read from */
export async function checkFolder(command: keyof typeof FOLDERS, data: string): Promise<void> {
  const needed = command === "unet" ? [data, join(data, "images"), join(data, "masks")] : [data];
  for (const folder of needed) {
    const found = await Deno.stat(folder).catch(() => undefined);
    if (found?.isDirectory) continue;
    throw new Error(
      `Cannot use --data ${data} with ${command}: there is no folder "${folder}"; ` +
        `give a folder with ${FOLDERS[command]}`,
    );
  }
}
