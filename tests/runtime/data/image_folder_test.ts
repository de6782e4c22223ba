import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { imageFolder } from "../../../runtime/data/image_folder.ts";
import { assertClose, type Files, inFolder, read } from "./folders.ts";
import { JPEG, JPEG_ROWS, plainPng, png } from "./images.ts";

const RED = plainPng(255, 0, 0);
const GREEN = plainPng(0, 255, 0);
const BLUE = plainPng(0, 0, 255);
const TWO: Files = { "a/1.png": RED, "b/1.png": GREEN };

Deno.test("imageFolder() takes sub-folders as classes, both sorted by name, at any depth", async () => {
  const files = {
    "dog/x/2.png": RED,
    "dog/1.png": GREEN,
    "cat/1.png": BLUE,
    "bird/1.png": GREEN,
    "notes.txt": RED,
  };
  await inFolder(files, async (root) => {
    for (const directory of [root, pathToFileURL(root)]) {
      const samples = await imageFolder(directory, { shape: [1, 1, 3] });
      assert.deepEqual(samples.classes, ["bird", "cat", "dog"]);
      assert.equal(samples.length, 4);
      assert.deepEqual(samples.input, { shape: [1, 1, 3], dtype: "float32" });
      assert.deepEqual(samples.target, { shape: [3], dtype: "float32" });
      assert.deepEqual(await read(samples, 0), { input: [0, 1, 0], target: [1, 0, 0] });
      assert.deepEqual(await read(samples, 1), { input: [0, 0, 1], target: [0, 1, 0] });
      assert.deepEqual(await read(samples, 2), { input: [0, 1, 0], target: [0, 0, 1] });
      assert.deepEqual(await read(samples, 3), { input: [1, 0, 0], target: [0, 0, 1] });
      await assert.rejects(read(samples, 4), /Cannot read image 4: expected 0 to 3/);
    }
  });
});

Deno.test("imageFolder() tells PNG and JPEG by content, whatever a file is called", async () => {
  await inFolder({ "a/really.png": JPEG, "b/really.jpg": RED }, async (root) => {
    const samples = await imageFolder(root, { shape: [6, 8, 3] });
    const { input } = await read(samples, 0);
    assertClose(input.slice(0, 24), JPEG_ROWS[0].map((byte) => byte / 255));
    assertClose((await read(samples, 1)).input.slice(0, 3), [1, 0, 0]);
  });
});

Deno.test("imageFolder() brings every kind of PNG to 0..1 and the wanted channels", async () => {
  const files = {
    "a/1-grey.png": png({ width: 1, colourType: 0, depth: 2, rows: [[0b01000000]] }),
    "a/2-grey16.png": png({ width: 1, colourType: 0, depth: 16, rows: [[0x80, 0x01]] }),
    "a/3-alpha.png": png({ width: 1, colourType: 6, depth: 8, rows: [[51, 102, 153, 0]] }),
    "a/4-palette.png": png({ width: 1, colourType: 3, depth: 8, rows: [[0]], palette: [51, 102, 153] }),
    "a/5-grey-alpha.png": png({ width: 1, colourType: 4, depth: 8, rows: [[51, 9]] }),
    "b/1-rgb16.png": png({
      width: 1,
      colourType: 2,
      depth: 16,
      rows: [[0x33, 0x33, 0x66, 0x66, 0x99, 0x99]],
    }),
  };
  const grey16 = 0x8001 / 65535;
  const colours = [[1 / 3, 1 / 3, 1 / 3], [grey16, grey16, grey16], [0.2, 0.4, 0.6], [0.2, 0.4, 0.6]];
  const rest = [[0.2, 0.2, 0.2], [0.2, 0.4, 0.6]];
  await inFolder(files, async (root) => {
    const colour = await imageFolder(root, { shape: [1, 1, 3] });
    const grey = await imageFolder(root, { shape: [1, 1, 1] });
    for (const [i, [r, g, b]] of [...colours, ...rest].entries()) {
      assertClose((await read(colour, i)).input, [r!, g!, b!]);
      assertClose((await read(grey, i)).input, [0.299 * r! + 0.587 * g! + 0.114 * b!]);
    }
  });
});

Deno.test("imageFolder() resizes each image from its own size", async () => {
  const stripes = png({ width: 4, colourType: 0, depth: 8, rows: [[0, 255, 0, 255]] });
  const ramp = png({ width: 2, colourType: 0, depth: 8, rows: [[0, 255]] });
  await inFolder({ "a/1.png": stripes, "a/2.png": ramp, "b/1.png": stripes }, async (root) => {
    const smooth = await imageFolder(root, { shape: [1, 2, 1] });
    const nearest = await imageFolder(root, { shape: [1, 2, 1], antialias: false });
    // Weights of a triangle 2 target pixels wide, cut at the border: 0.75, 0.75, 0.25 of 1.75.
    assertClose((await read(smooth, 0)).input, [3 / 7, 4 / 7]);
    assertClose((await read(nearest, 0)).input, [0.5, 0.5]);
    assertClose((await read(smooth, 1)).input, [0, 1]);
    assertClose((await read(smooth, 2)).input, [3 / 7, 4 / 7]);
  });
});

Deno.test("imageFolder() reads several samples at once", async () => {
  const files = { "a/1.png": RED, "a/2.jpg": JPEG, "b/1.png": GREEN, "b/2.png": BLUE };
  await inFolder(files, async (root) => {
    const samples = await imageFolder(root, { shape: [3, 3, 1] });
    const one = [];
    for (let i = 0; i < 4; i++) one.push(await read(samples, i));
    assert.deepEqual(await Promise.all([0, 1, 2, 3].map((i) => read(samples, i))), one);
  });
});

Deno.test("imageFolder() takes the classes of another folder, in their order", async () => {
  await inFolder({ ...TWO, "c/1.png": BLUE }, async (root) => {
    const samples = await imageFolder(root, { shape: [1, 1, 3], classes: ["c", "a"] });
    assert.equal(samples.length, 2);
    assert.deepEqual(await read(samples, 0), { input: [0, 0, 1], target: [1, 0] });
    assert.deepEqual(await read(samples, 1), { input: [1, 0, 0], target: [0, 1] });
    await assert.rejects(
      imageFolder(root, { shape: [1, 1, 3], classes: ["a", "d"] }),
      /Cannot list the images in ".*d"/,
    );
  });
});

Deno.test("imageFolder() leaves out hidden files and what `skip` names", async () => {
  const text = new TextEncoder().encode("not an image");
  const files = { ...TWO, "a/.DS_Store": text, ".cache/1.png": RED, "b/list.txt": text, "old/1.png": RED };
  await inFolder(files, async (root) => {
    const skip = (path: string) => path.endsWith(".txt") || path.endsWith("old");
    const samples = await imageFolder(root, { shape: [1, 1, 3], skip });
    assert.deepEqual(samples.classes, ["a", "b"]);
    assert.equal(samples.length, 2);
  });
});

Deno.test("imageFolder() follows links to files and folders", async () => {
  await inFolder({ "images/a/1.png": RED, "far/b/1.png": GREEN, "far/2.png": BLUE }, async (root) => {
    await Deno.symlink(join(root, "far/b"), join(root, "images/b"));
    await Deno.symlink(join(root, "far/2.png"), join(root, "images/a/2.png"));
    const samples = await imageFolder(join(root, "images"), { shape: [1, 1, 3] });
    assert.deepEqual(samples.classes, ["a", "b"]);
    assert.deepEqual((await read(samples, 1)).input, [0, 0, 1]);
    assert.deepEqual((await read(samples, 2)).input, [0, 1, 0]);
  });
});

Deno.test("imageFolder() rejects a folder that cannot be trained on, and says why", async () => {
  const shape = [1, 1, 3] as const;
  await assert.rejects(
    imageFolder("/no/such/folder", { shape }),
    /Cannot list the images in "\/no\/such/,
  );
  await inFolder({ "1.png": RED }, async (root) => {
    await assert.rejects(imageFolder(root, { shape }), /expected 2 or more sub-folders, found none/);
    await assert.rejects(imageFolder(join(root, "1.png"), { shape }), /Cannot list the images in ".*1\.png"/);
  });
  await inFolder({ "cat/1.png": RED }, async (root) => {
    await assert.rejects(imageFolder(root, { shape }), /found only "cat"/);
  });
  await inFolder(TWO, async (root) => {
    await Deno.mkdir(join(root, "empty"));
    await assert.rejects(imageFolder(root, { shape }), /Cannot learn the class "empty"/);
    await assert.rejects(imageFolder(root, { shape: [1, 1, 2] }), /\[1, 1, 2\]: expected .* 1 or 3 channels/);
    await assert.rejects(imageFolder(root, { shape: [0, 1, 3] }), RangeError);
  });
});

Deno.test("imageFolder() names a file that is no image or broken off, before training", async () => {
  const shape = [1, 1, 3] as const;
  const bad: Record<string, [Uint8Array, RegExp]> = {
    "text.png": [
      new TextEncoder().encode("hello"),
      /Cannot read the image ".*text\.png": Expected PNG or JPEG/,
    ],
    "empty.png": [new Uint8Array(0), /".*empty\.png": The file is empty/],
    "part.jpg": [JPEG.slice(0, JPEG.length - 20), /".*part\.jpg": Premature end of JPEG file/],
    "part.png": [RED.slice(0, RED.length - 20), /Cannot read the image ".*part\.png": ./],
  };
  for (const [name, [content, message]] of Object.entries(bad)) {
    const files = { "a/0.jpg": JPEG, "a/0.png": RED, [`a/${name}`]: content, "b/1.png": GREEN };
    await inFolder(files, async (root) => {
      await assert.rejects(imageFolder(root, { shape }), message);
    });
  }
});

Deno.test("imageFolder() finds damage within a file when it is read, or at once if asked to", async () => {
  const damaged = Uint8Array.from(RED, (byte, i) => i === 50 ? byte ^ 1 : byte);
  await inFolder({ "a/1.png": RED, "a/2.png": damaged, "b/1.png": GREEN }, async (root) => {
    const samples = await imageFolder(root, { shape: [1, 1, 3] });
    await read(samples, 0);
    await assert.rejects(read(samples, 1), /Cannot read the image ".*2\.png"/);
    await assert.rejects(
      imageFolder(root, { shape: [1, 1, 3], verify: true }),
      /Cannot read the image ".*2\.png"/,
    );
  });
});
