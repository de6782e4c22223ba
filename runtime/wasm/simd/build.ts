/**
 * Compiles `../assembly/` (AssemblyScript) to WebAssembly and writes it into `module.ts`, so that neither a run
 * nor an import from a URL needs a compiler. `deno task kernels` runs it; a test sees that the two agree.
 * @module
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../assembly/", import.meta.url));
const TARGET = fileURLToPath(new URL("./module.ts", import.meta.url));

/** Compiles the kernels. @throws {Error} with the compiler's messages */
export async function compile(): Promise<Uint8Array<ArrayBuffer>> {
  const { main } = await import("npm:assemblyscript@0.28.20/asc");
  let binary: Uint8Array<ArrayBuffer> | undefined;
  const options = [
    ["--outFile", "kernels.wasm"],
    ["--runtime", "stub"], // no objects are made
    ["--importMemory"], // that of tfjs's backend
    ["--noAssert"],
    ["--optimizeLevel", "3"],
    ["--enable", "simd"],
    ["--enable", "relaxed-simd"],
  ];
  const { error, stderr } = await main(["kernels.ts", ...options.flat()], {
    readFile(name) {
      try {
        return Deno.readTextFileSync(join(FOLDER, name));
      } catch {
        return null; // the compiler tries several names
      }
    },
    writeFile(_name, contents) {
      binary = contents as Uint8Array<ArrayBuffer>;
    },
    listFiles: () => [],
  });
  if (error || !binary) throw new Error(`Cannot compile ${FOLDER}: ${stderr.toString() || error}`);
  return binary;
}

/** The text of `module.ts`. */
export function moduleText(binary: Uint8Array<ArrayBuffer>): string {
  return `/** Compiled from \`../assembly/\` by \`deno task kernels\`; not to be edited. @module */
/** The module, in base64. */
export const MODULE =
  "${binary.toBase64()}";
`;
}

if (import.meta.main) {
  const binary = await compile();
  Deno.writeTextFileSync(TARGET, moduleText(binary));
  console.error(`${binary.length} bytes of WebAssembly in ${join(dirname(TARGET), "module.ts")}`);
}
