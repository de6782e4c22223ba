/** Compiles `../assembly/` (AssemblyScript) into `module.ts`. `deno task kernels` runs it. @module */
import { fileURLToPath } from "node:url";
import { compileAssembly, writeModule } from "../../../ring/simd/assembly_script.ts";

const FOLDER = fileURLToPath(new URL("../assembly/", import.meta.url));
const TARGET = fileURLToPath(new URL("./module.ts", import.meta.url));

/** Compiles the kernels, which import the memory of tfjs's backend. @throws {Error} with the compiler's messages */
export function compile(): Promise<Uint8Array<ArrayBuffer>> {
  return compileAssembly({ folder: FOLDER, entry: "kernels.ts", features: ["simd", "relaxed-simd"] });
}

if (import.meta.main) writeModule(TARGET, "../assembly/", await compile());
