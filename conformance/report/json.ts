/** The report as a file. @module */
import { dirname } from "node:path";
import type { Report } from "./report.ts";

/**
 * Makes sure, before any work, that the file can be written.
 *
 * @throws {Error} naming what is wrong and the remedy
 */
export async function checkFile(path: string): Promise<void> {
  try {
    await Deno.mkdir(dirname(path), { recursive: true });
    if ((await Deno.stat(path).catch(() => undefined))?.isDirectory) throw new Error("it is a folder");
    await Deno.remove(await writePart(path, ""));
  } catch (error) {
    const reason = (error as Error).message.replace(/: (mkdir|open|stat|writefile) .*$/, "");
    throw new Error(`Cannot write to --json ${path}: ${reason}; give a file that may be written`, {
      cause: error,
    });
  }
}

/** Writes the file, as a whole or not at all. */
export async function writeFile(path: string, report: Report): Promise<void> {
  await Deno.rename(await writePart(path, `${JSON.stringify(report, null, 2)}\n`), path);
}

async function writePart(path: string, text: string): Promise<string> {
  const part = `${path}.${crypto.randomUUID()}.part`;
  await Deno.writeTextFile(part, text);
  return part;
}
