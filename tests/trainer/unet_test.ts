/** A U-Net on small images learns to find strokes, on one device. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import { digitMasks } from "../../runtime/data/digit_masks.ts";
import { bceDiceLoss, dice, iou } from "../../stages/segmentation.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { unet } from "../../stages/unet.ts";
import { needsTensorflow } from "./engine.ts";

silenceBanner();

Deno.test("unet() learns the strokes of digits: loss falls, IoU and Dice rise", needsTensorflow, async () => {
  const shape = [32, 32, 3] as const;
  const model = unet({ inputShape: shape, seed: 1 });
  const trainer = await distribute(model, {
    strategy: "single",
    devices: ["cpu:0"],
    engine: "tensorflow",
    seed: 1,
  });
  try {
    trainer.compile({ optimizer: tf.train.adam(2e-3), loss: bceDiceLoss, metrics: [iou, dice] });
    const { history } = await trainer.fit(await digitMasks({ shape, count: 64 }), {
      batchSize: 8,
      epochs: 3,
    });
    const of = (name: string) => history[name] as number[];
    assert.deepEqual(Object.keys(history).sort(), ["dice", "iou", "loss"]);
    assert.ok(of("loss")[2]! < 0.75 * of("loss")[0]!, `losses ${of("loss")}`);
    for (const name of ["iou", "dice"]) assert.ok(of(name)[2]! > 1.25 * of(name)[0]!, `${name} ${of(name)}`);
  } finally {
    await trainer.dispose();
    model.dispose();
  }
});
