/** Each layer of the repository imports only those below it. @module */
import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** What the files of a folder may import, beside the folder itself and what comes from npm or Node. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  ring: [],
  stages: ["ring", "deps.ts"],
  runtime: ["ring", "stages", "deps.ts", "deno.json"],
  cli: ["runtime"],
  bench: ["ring", "stages", "runtime", "cli", "deps.ts"],
  conformance: ["ring", "stages", "runtime", "cli", "deps.ts"],
};

function* files(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    if (isDirectory) yield* files(path);
    else if (name.endsWith(".ts")) yield path;
  }
}

for (const [layer, below] of Object.entries(LAYERS)) {
  Deno.test(`${layer}/ imports ${below.length > 0 ? `${below.join(", ")} and ` : ""}itself alone`, () => {
    let count = 0;
    for (const file of files(join(ROOT, layer))) {
      const text = Deno.readTextFileSync(file);
      for (const [, specifier] of text.matchAll(/(?:from|import\(|import) "(\.[^"]+)"/g)) {
        const target = relative(ROOT, join(dirname(file), specifier!));
        const [top] = target.split("/");
        assert.ok(top === layer || below.includes(top!), `${relative(ROOT, file)} imports ${target}`);
        count++;
      }
    }
    assert.ok(count > 0, "no import was read");
  });
}
