/** Folders of files and what is read from them, for tests. @module */
import assert from "node:assert/strict";
import { join } from "node:path";
import { sizeOf } from "../../../ring/dtype.ts";
import type { Samples } from "../../../runtime/data/samples.ts";

/** Contents by path. */
export type Files = Readonly<Record<string, Uint8Array>>;

/** Runs `test` in a fresh directory that holds `files`, by path. */
export async function inFolder(files: Files, test: (root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir({ prefix: "stagger-images-" });
  try {
    for (const [path, content] of Object.entries(files)) {
      await Deno.mkdir(join(root, path, ".."), { recursive: true });
      await Deno.writeFile(join(root, path), content);
    }
    await test(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

/** One sample, as it is in an epoch. */
export async function read(
  samples: Samples,
  index: number,
  epoch?: number,
): Promise<{ input: number[]; target: number[] }> {
  const input = new Float32Array(sizeOf(samples.input.shape)).fill(NaN);
  const target = new Float32Array(sizeOf(samples.target.shape)).fill(NaN);
  await samples.read(index, input, target, epoch);
  return { input: [...input], target: [...target] };
}

/** Asserts that numbers differ by no more than the tolerance. */
export function assertClose(actual: readonly number[], expected: readonly number[], tolerance = 1e-6): void {
  assert.equal(actual.length, expected.length);
  for (const [i, value] of expected.entries()) {
    assert.ok(Math.abs(actual[i]! - value) <= tolerance, `${i}: ${actual[i]}, not ${value}`);
  }
}
