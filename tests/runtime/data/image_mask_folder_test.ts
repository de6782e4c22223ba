import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batches } from "../../../runtime/data/batches.ts";
import { imageMaskFolder, type ImageMaskFolderOptions } from "../../../runtime/data/image_mask_folder.ts";
import type { Samples } from "../../../runtime/data/samples.ts";
import { assertClose, type Files, inFolder, read } from "./folders.ts";
import { JPEG, plainPng, png } from "./images.ts";

const BLACK = plainPng(0, 0, 0);
const RED = plainPng(255, 0, 0);
const WHITE = plainPng(255, 255, 255);

/** Opens `x` and `y` of a fresh directory that holds `files`. */
async function withPairs(
  files: Files,
  options: Partial<ImageMaskFolderOptions>,
  test: (samples: Samples, root: string) => Promise<void>,
): Promise<void> {
  await inFolder(files, async (root) => {
    const [images, masks] = [join(root, "x"), join(root, "y")];
    await test(await imageMaskFolder({ images, masks, shape: [2, 2, 3], ...options }), root);
  });
}

function grey(...rows: number[][]): Uint8Array {
  return png({ width: rows[0]!.length, colourType: 0, depth: 8, rows });
}

const SIZE = 16;
/** Red tells the column and green the row, in steps of 16 of 255. */
const PLACES = png({
  ...{ width: SIZE, colourType: 2, depth: 8 },
  rows: Array.from(
    { length: SIZE },
    (_, y) => Array.from({ length: SIZE }, (_, x) => [16 * x, 16 * y, 0]).flat(),
  ),
});
/** Columns from 8 and rows from 5, but not both. */
const CORNERS = grey(
  ...Array.from(
    { length: SIZE },
    (_, y) => Array.from({ length: SIZE }, (_, x) => x >= 8 !== y >= 5 ? 255 : 0),
  ),
);
const PLACED: Files = { "x/1.png": PLACES, "y/1.png": CORNERS, "x/2.png": PLACES, "y/2.png": CORNERS };
const AUGMENTED = { shape: [SIZE, SIZE, 3], flip: ["horizontal", "vertical"], crop: 0.4 } as const;

Deno.test("imageMaskFolder() pairs files by their path without the extension", async () => {
  const files: Files = {
    "x/b.png": RED,
    "x/a/1.jpg": JPEG,
    "x/a/2.v2.png": WHITE,
    "x/.DS_Store": new Uint8Array(3),
    "y/b.jpeg": BLACK,
    "y/a/1.png": grey(...Array.from({ length: 6 }, () => new Array(8).fill(255))),
    "y/a/2.v2.png": WHITE,
  };
  await withPairs(files, {}, async (samples, root) => {
    assert.equal(samples.length, 3);
    assert.deepEqual(samples.input, { shape: [2, 2, 3], dtype: "float32" });
    assert.deepEqual(samples.target, { shape: [2, 2, 1], dtype: "float32" });
    assert.deepEqual((await read(samples, 0)).target, [1, 1, 1, 1]);
    assert.deepEqual(await read(samples, 1), { input: new Array(12).fill(1), target: [1, 1, 1, 1] });
    const third = { input: [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0], target: [0, 0, 0, 0] };
    assert.deepEqual(await read(samples, 2), third);
    await assert.rejects(read(samples, 3), /Cannot read image 3: expected 0 to 2/);
    const [images, masks] = ["x", "y"].map((name) => pathToFileURL(join(root, name)));
    const byUrl = await imageMaskFolder({ images: images!, masks: masks!, shape: [2, 2, 3] });
    assert.deepEqual(await read(byUrl, 2), third);
  });
});

Deno.test("imageMaskFolder() resizes images smoothly and masks by the nearest pixel", async () => {
  const row = [0, 0, 255, 255];
  const files: Files = { "x/1.png": grey(row, row), "y/1.png": grey(row, row) };
  await withPairs(files, { shape: [1, 8, 1] }, async (samples) => {
    const { input, target } = await read(samples, 0);
    assertClose(input, [0, 0, 0, 0.25, 0.75, 1, 1, 1]);
    assert.deepEqual(target, [0, 0, 0, 0, 1, 1, 1, 1]);
  });
  await withPairs(files, { shape: [4, 2, 1] }, async (samples) => {
    assert.deepEqual((await read(samples, 0)).target, [0, 1, 0, 1, 0, 1, 0, 1]);
  });
  const odd = [0, 255, 0, 255, 0, 255];
  await withPairs({ "x/1.png": grey(odd), "y/1.png": grey(odd) }, { shape: [1, 2, 1] }, async (samples) => {
    assert.deepEqual((await read(samples, 0)).target, [1, 0]); // the centres 1.5 and 4.5 lie in pixels 1 and 4
  });
});

Deno.test("imageMaskFolder() keeps image and mask together under crops and flips", async () => {
  await withPairs(PLACED, AUGMENTED, async (samples) => {
    const turned = new Set<string>();
    let spread = 0;
    for (let epoch = 0; epoch < 40; epoch++) {
      const { input, target } = await read(samples, 0, epoch);
      const at = (y: number, x: number) => [0, 1].map((c) => input[(y * SIZE + x) * 3 + c]! * 255 / 16 + 0.5);
      for (let i = 0; i < SIZE * SIZE; i++) {
        // Where the pixel lay in the file; a border's half pixel is repeated.
        const [x, y] = at(Math.floor(i / SIZE), i % SIZE);
        if (Math.abs(x! - 8) < 1e-3 || Math.abs(y! - 5) < 1e-3) continue;
        assert.equal(target[i], x! >= 8 !== y! >= 5 ? 1 : 0, `${x}, ${y} of epoch ${epoch}`);
      }
      const [first, last] = [at(0, 0), at(SIZE - 1, SIZE - 1)];
      turned.add([first[0]! < last[0]!, first[1]! < last[1]!].join());
      spread = Math.max(spread, Math.abs(last[0]! - first[0]!));
      assert.ok(Math.abs(last[0]! - first[0]!) >= 0.4 * SIZE - 1.5);
      assertClose([Math.abs(last[1]! - first[1]!)], [Math.abs(last[0]! - first[0]!)], 1e-3);
    }
    assert.equal(turned.size, 4, "mirrored in no way, either, and both");
    assert.ok(spread > 0.8 * SIZE);
  });
});

Deno.test("imageMaskFolder() changes samples by seed, epoch and index", async () => {
  await withPairs(PLACED, AUGMENTED, async (samples, root) => {
    const first = await read(samples, 0, 1);
    assert.deepEqual(await read(samples, 0, 1), first);
    assert.deepEqual(await read(samples, 0), await read(samples, 0, 0));
    assert.notDeepEqual(await read(samples, 0, 2), first);
    assert.notDeepEqual(await read(samples, 1, 1), first);
    const [images, masks] = [join(root, "x"), join(root, "y")];
    const again = await imageMaskFolder({ images, masks, ...AUGMENTED });
    assert.deepEqual(await read(again, 0, 1), first);
    const other = await imageMaskFolder({ images, masks, ...AUGMENTED, seed: 1 });
    assert.notDeepEqual(await read(other, 0, 1), first);
    const plain = await imageMaskFolder({ images, masks, shape: AUGMENTED.shape });
    assert.deepEqual(await read(plain, 0, 1), await read(plain, 1, 2));
  });
});

Deno.test("imageMaskFolder() is drawn anew in each epoch of batches()", async () => {
  await withPairs(PLACED, AUGMENTED, async (samples) => {
    const epoch = async (epoch: number) => {
      const [batch] = await Array.fromAsync(batches(samples, { batchSize: 2, shuffle: false, epoch }));
      return [...batch!.inputs];
    };
    assert.deepEqual(await epoch(3), [
      ...(await read(samples, 0, 3)).input,
      ...(await read(samples, 1, 3)).input,
    ]);
    assert.notDeepEqual(await epoch(3), await epoch(4));
  });
});

Deno.test("imageMaskFolder() takes for the mask what is brighter than the threshold", async () => {
  const files: Files = {
    "x/1.png": png({ width: 4, colourType: 2, depth: 8, rows: [new Array(12).fill(0)] }),
    "y/1.png": png({ width: 4, colourType: 2, depth: 8, rows: [[0, 0, 0, 127, 0, 0, 0, 0, 128, 0, 255, 0]] }),
  };
  const target = async (threshold?: number) => {
    let found: number[] = [];
    await withPairs(files, { shape: [1, 4, 3], threshold }, async (samples) => {
      found = (await read(samples, 0)).target;
    });
    return found;
  };
  assert.deepEqual(await target(), [0, 0, 1, 1]);
  assert.deepEqual(await target(0), [0, 1, 1, 1]);
  assert.deepEqual(await target(0.9), [0, 0, 0, 1]);
});

Deno.test("imageMaskFolder() refuses masks that the threshold would empty", async () => {
  const files: Files = { "x/1.png": grey([9, 9]), "y/1.png": grey([0, 1]) };
  await assert.rejects(
    withPairs(files, {}, () => Promise.resolve()),
    /Cannot use the mask ".*y.1\.png": its brightest pixel is 1 of 255.* more than 127\.5; take "threshold" 0/,
  );
  await withPairs(files, { threshold: 0, shape: [1, 2, 1] }, async (samples) => {
    assert.deepEqual((await read(samples, 0)).target, [0, 1]);
  });
});

Deno.test("imageMaskFolder() refuses files without a partner, and names them", async () => {
  const refuses = (files: Files, message: RegExp) =>
    assert.rejects(withPairs(files, {}, () => Promise.resolve()), message);
  await refuses(
    { "x/1.png": RED, "x/2.png": RED, "y/1.png": BLACK },
    /no mask in ".*y" for ".*x.2\.png"; give both the same name/,
  );
  await refuses(
    { "x/1.png": RED, "y/1.png": BLACK, "y/a/2.png": BLACK },
    /^Error: Cannot pair images with masks: found no image in ".*x" for ".*y.a.2\.png";/,
  );
  const many = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`x/${i}.png`, RED]));
  await refuses(
    { ...many, "y/0.png": BLACK, "y/z.png": BLACK },
    /"x?.*5\.png" and 2 more and no image in .*z\.png"/,
  );
  await refuses(
    { "x/1.png": RED, "x/1.jpg": JPEG, "y/1.png": BLACK },
    /Cannot tell ".*1\.jpg" from ".*1\.png" by their names without extension/,
  );
});

Deno.test("imageMaskFolder() refuses folders, files and options that it cannot use, and says why", async () => {
  const pair: Files = { "x/1.png": RED, "y/1.png": BLACK };
  const refuses = (files: Files, message: RegExp, options: Partial<ImageMaskFolderOptions> = {}) =>
    assert.rejects(withPairs(files, options, () => Promise.resolve()), message);
  await refuses({ "x/1.png": RED }, /Cannot list the images in ".*y"/);
  await refuses({ "x/.hidden": RED, "y/.hidden": RED }, /expected images in ".*x", found none/);
  await refuses({ ...pair, "y/1.png": new TextEncoder().encode("mask") }, /image ".*y.1\.png": Expected PNG/);
  await refuses({ ...pair, "y/1.png": BLACK.slice(0, -20) }, /Cannot read the image ".*y.1\.png"/);
  await refuses(
    { ...pair, "y/1.png": grey([0, 0, 0]) },
    /mask ".*y.1\.png": it is 1 x 3 pixels, its image ".*x.1\.png" is 2 x 2; expected the same size/,
  );
  await refuses(pair, /threshold" from 0 to below 1/, { threshold: 1 });
  await refuses(pair, /Cannot crop images to 2/, { crop: 2 });
  await refuses(pair, /\[2, 2, 2\]: expected .* 1 or 3 channels/, { shape: [2, 2, 2] });
  const second: Files = { ...pair, "x/2.png": RED, "y/2.png": grey([0, 0, 0]) };
  await refuses(second, /mask ".*y.2\.png": it is 1 x 3 pixels/, { verify: true });
  await withPairs(second, {}, async (samples) => {
    await read(samples, 0);
    await assert.rejects(read(samples, 1), /mask ".*y.2\.png": it is 1 x 3 pixels/);
  });
  const skip = (path: string) => path.endsWith("2.png");
  await withPairs(second, { skip }, (samples) => Promise.resolve(assert.equal(samples.length, 1)));
});
