import assert from "node:assert/strict";
import {
  type Changes,
  checkAugment,
  cropImage,
  drawChanges,
  flipPixels,
} from "../../../runtime/data/augment.ts";
import type { Image } from "../../../runtime/data/decode.ts";

const NONE: Changes = { horizontal: false, vertical: false, part: 1, top: 0, left: 0 };

Deno.test("flipPixels() mirrors whole pixels, sideways and upside down", () => {
  const flipped = (changes: Partial<Changes>) => {
    const pixels = Float32Array.from([1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60]); // 2 x 3 pixels of 2 channels
    flipPixels(pixels, [2, 3, 2], { ...NONE, ...changes });
    return [...pixels];
  };
  assert.deepEqual(flipped({}), [1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60]);
  assert.deepEqual(flipped({ horizontal: true }), [5, 6, 3, 4, 1, 2, 50, 60, 30, 40, 10, 20]);
  assert.deepEqual(flipped({ vertical: true }), [10, 20, 30, 40, 50, 60, 1, 2, 3, 4, 5, 6]);
  assert.deepEqual(flipped({ horizontal: true, vertical: true }), [50, 60, 30, 40, 10, 20, 5, 6, 3, 4, 1, 2]);
});

Deno.test("cropImage() keeps a part, alpha and all, from one border to the other", () => {
  const image: Image = {
    ...{ height: 4, width: 2, channels: 1, stride: 2, white: 255 },
    data: Uint8Array.from({ length: 16 }, (_, i) => i),
  };
  const data = (changes: Partial<Changes>) => [...cropImage(image, { ...NONE, part: 0.5, ...changes }).data];
  assert.deepEqual(data({}), [0, 1, 4, 5]);
  assert.deepEqual(data({ left: 0.99 }), [2, 3, 6, 7]);
  assert.deepEqual(data({ top: 0.99 }), [8, 9, 12, 13]);
  assert.deepEqual(data({ top: 0.5, left: 0.5 }), [6, 7, 10, 11]);
  assert.deepEqual(data({ part: 0.01, top: 0.99, left: 0.99 }), [14, 15]);
  assert.equal(cropImage(image, NONE), image);
  const { height, width } = cropImage(image, { ...NONE, part: 0.5 });
  assert.deepEqual([height, width], [2, 1]);
});

Deno.test("drawChanges() draws by seed, epoch and sample, and each flip by half", () => {
  const options = { flip: ["horizontal", "vertical"], crop: 0.6, seed: 3 } as const;
  assert.deepEqual(drawChanges(options, 4, 5), drawChanges(options, 4, 5));
  const first = drawChanges(options, 4, 5);
  const others = [
    drawChanges(options, 5, 4),
    drawChanges(options, 4, 6),
    drawChanges({ ...options, seed: 4 }, 4, 5),
  ];
  for (const other of others) assert.notEqual(other.part, first.part);
  const draws = Array.from({ length: 400 }, (_, i) => drawChanges(options, i, 0));
  for (const way of ["horizontal", "vertical"] as const) {
    const times = draws.filter((changes) => changes[way]).length;
    assert.ok(times > 160 && times < 240, `${way} ${times} of 400`);
  }
  const both = draws.filter(({ horizontal, vertical }) => horizontal && vertical).length;
  assert.ok(both > 65 && both < 135, `both ${both} of 400`);
  const parts = draws.map(({ part }) => part);
  assert.ok(Math.min(...parts) >= 0.6 && Math.min(...parts) < 0.61);
  assert.ok(Math.max(...parts) <= 1 && Math.max(...parts) > 0.99);
});

Deno.test("drawChanges() changes nothing that is not asked for", () => {
  for (let i = 0; i < 20; i++) {
    const { horizontal, vertical, part } = drawChanges({}, i, 0);
    assert.deepEqual([horizontal, vertical, part], [false, false, 1]);
    assert.equal(drawChanges({ flip: ["vertical"] }, i, 0).horizontal, false);
  }
});

Deno.test("checkAugment() refuses options that are out of range", () => {
  assert.throws(
    () => checkAugment({ crop: 0 }),
    /Cannot crop images to 0 of their size: expected .* above 0/,
  );
  assert.throws(() => checkAugment({ crop: 1.5 }), RangeError);
  assert.throws(
    () => checkAugment({ flip: "horizontal" as never }),
    /Cannot flip images "horizontal": expected/,
  );
  assert.throws(() => checkAugment({ flip: ["left" as "vertical"] }), TypeError);
  assert.throws(() => checkAugment({ seed: -1 }), RangeError);
  checkAugment({ flip: ["horizontal"], crop: 0.5, seed: 1 });
});
