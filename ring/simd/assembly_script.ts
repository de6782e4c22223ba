/**
 * Compiles a folder of AssemblyScript to WebAssembly, and keeps the binary in a TypeScript module, so that neither
 * a run nor an import from a URL needs a compiler. `deno task kernels` runs this; tests see that the two agree.
 * @module
 */
import { join } from "node:path";

/** What is compiled, and how. */
export interface AssemblyScript {
  /** Path of the folder. */
  readonly folder: string;
  /** File in it whose exports the module has. */
  readonly entry: string;
  /** Features of WebAssembly beside the usual ones, such as "simd". */
  readonly features: readonly string[];
  /** Options of the compiler, with their values. */
  readonly options?: readonly string[];
}

/** Compiles. The module imports its memory and makes no objects. @throws {Error} with the compiler's messages */
export async function compileAssembly(source: AssemblyScript): Promise<Uint8Array<ArrayBuffer>> {
  const { main } = await import("npm:assemblyscript@0.28.20/asc");
  const { folder, entry, features, options = [] } = source;
  let binary: Uint8Array<ArrayBuffer> | undefined;
  const args = [
    ...[entry, "--outFile", "module.wasm"],
    ...["--runtime", "stub"], // no objects are made
    ...["--importMemory", "--noAssert", "--optimizeLevel", "3"],
    ...features.flatMap((feature) => ["--enable", feature]),
    ...options,
  ];
  const { error, stderr } = await main(args, {
    readFile(name) {
      try {
        return Deno.readTextFileSync(join(folder, name));
      } catch {
        return null; // the compiler tries several names
      }
    },
    writeFile(_name, contents) {
      binary = contents as Uint8Array<ArrayBuffer>;
    },
    listFiles: () => [],
  });
  if (error || !binary) throw new Error(`Cannot compile ${folder}: ${stderr.toString() || error}`);
  return binary;
}

/** Writes the module that holds `binary`. @param from what it was compiled from, for the module's docstring */
export function writeModule(path: string, from: string, binary: Uint8Array<ArrayBuffer>): void {
  const text = `/** Compiled from \`${from}\` by \`deno task kernels\`; not to be edited. @module */
/** The module, in base64. */
export const MODULE =
  "${binary.toBase64()}";
`;
  Deno.writeTextFileSync(path, text);
  console.error(`${binary.length} bytes of WebAssembly in ${path}`);
}
