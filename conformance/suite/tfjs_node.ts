/**
 * Which specs tfjs-node leaves out when it runs this suite.
 *
 * The list is in its published package, `dist/run_tests.js`: parts of full names, each with a remark. It is read
 * from there, so that nothing is left out here that is not left out there.
 * @module
 */
import { fileURLToPath } from "node:url";
import "npm:@tensorflow/tfjs-node-gpu@4.22.0/package.json" with { type: "json" };

/** @throws {Error} if the list is not where it was */
export function readIgnoreList(): string[] {
  const path = fileURLToPath(
    import.meta.resolve("npm:@tensorflow/tfjs-node-gpu@4.22.0/dist/run_tests.js"),
  );
  const list = /var IGNORE_LIST = \[\n(.*?)\n\];/s.exec(Deno.readTextFileSync(path))?.[1] ?? "";
  const names = [...list.matchAll(/^ {4}'(.*)',?$/gm)].map(([, name]) => name!);
  if (names.length === 0) {
    throw new Error(`Cannot find tfjs-node's list of specs in ${path}: expected IGNORE_LIST`);
  }
  return names;
}
