/** Partitions and folders that are refused before any work. @module */
import assert from "node:assert/strict";
import { join } from "node:path";
import { checkCuts, checkFolder } from "../../bench/check_inputs.ts";
import { modelGraph } from "../../stages/graph.ts";
import { residualNet } from "../trainer/models.ts";

Deno.test("checkCuts() refuses what the model does not have, and names its blocks", () => {
  const graph = modelGraph(residualNet());
  assert.throws(
    () => checkCuts(graph, ["nope"], 2),
    /^RangeError: Cannot use --partition nope: the model has no such.*its blocks are .*block, join, pool, head$/,
  );
  assert.throws(
    () => checkCuts(graph, ["pool", "block"], 3),
    /--partition pool,block: expected the model's order/,
  );
  assert.throws(() => checkCuts(graph, ["pool"], 3), /3 stages need 2 cuts, got 1/);
  checkCuts(graph, ["block", "pool"], 3);
});

Deno.test("checkFolder() names the folder that is not there, and what it has to have", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const nowhere = join(folder, "nowhere");
    await assert.rejects(
      checkFolder("unet", nowhere),
      ({ message }: Error) =>
        message.includes(`no folder "${nowhere}"; give a folder with sub-folders images and masks`),
    );
    await assert.rejects(checkFolder("resnet50", nowhere), /a sub-folder of images for each class/);
    await Deno.mkdir(join(folder, "images"));
    await assert.rejects(
      checkFolder("unet", folder),
      ({ message }: Error) => message.includes(`no folder "${join(folder, "masks")}"`),
    );
    await Deno.mkdir(join(folder, "masks"));
    await checkFolder("unet", folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
