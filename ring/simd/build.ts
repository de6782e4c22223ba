/** Compiles `../assembly/` (AssemblyScript) into `module.ts`. `deno task kernels` runs it. @module */
import { fileURLToPath } from "node:url";
import { compileAssembly, writeModule } from "./assembly_script.ts";

const FOLDER = fileURLToPath(new URL("../assembly/", import.meta.url));
const TARGET = fileURLToPath(new URL("./module.ts", import.meta.url));
const PAGES = "65536"; // the most that a memory has: any memory of a group fits

/** Compiles the addition. @throws {Error} with the compiler's messages */
export function compile(): Promise<Uint8Array<ArrayBuffer>> {
  return compileAssembly({
    folder: FOLDER,
    entry: "add.ts",
    features: ["simd", "threads"],
    options: ["--sharedMemory", "--initialMemory", "1", "--maximumMemory", PAGES],
  });
}

if (import.meta.main) writeModule(TARGET, "../assembly/", await compile());
