/** `deno task conformance`: runs tfjs-core's own test suite on an engine and judges it. @module */
import { describeError } from "../cli/describe_error.ts";
import { createProgress, type Progress } from "../cli/progress.ts";
import { type ConformanceOptions, HELP, readOptions } from "./options.ts";

async function main(args: string[]): Promise<number> {
  let options: ConformanceOptions;
  try {
    options = readOptions(args);
  } catch (error) {
    console.error((error as Error).message);
    return 2;
  }
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const progress = createProgress();
  try {
    return await run(options, progress);
  } catch (error) {
    progress.log(describeError(error));
    return 1;
  } finally {
    progress[Symbol.dispose]();
  }
}

async function run(options: ConformanceOptions, progress: Progress): Promise<number> {
  // Loaded after the first line of progress is out.
  const { runInProcess } = await import("./suite/process.ts");
  const { judgeRun, reportText } = await import("./report/report.ts");
  const { checkFile, writeFile } = await import("./report/json.ts");
  const { engine, filter, capture, stock, json } = options;
  if (json !== undefined) await checkFile(json);
  if (engine === "tensorflow") {
    const { fetchEngine } = await import("../cli/fetch_engine.ts");
    await fetchEngine("tensorflow", progress);
  }
  progress.phase("specs", 1);
  // One core each: both at once take hardly longer than one.
  const parts = [0, 0];
  const tick = (part: number) => (fraction: number, detail: string) => {
    parts[part] = fraction;
    progress.tick(stock ? (parts[0]! + parts[1]!) / 2 : fraction, detail);
  };
  const [ours, theirs] = await Promise.all([
    runInProcess(engine, { filter, capture }, tick(0)),
    stock ? runInProcess("stock-wasm", { filter, capture: false }, tick(1)) : undefined,
  ]);
  if (ours.specs.length === 0) {
    throw new RangeError(
      `No spec has ${filter.map((part) => `"${part}"`).join(" or ")} in its name: give another --filter`,
    );
  }
  progress.done();
  const report = judgeRun(options, ours, theirs);
  console.log(reportText(report));
  if (json !== undefined) await writeFile(json, report);
  return report.verdict.passed ? 0 : 1;
}

if (import.meta.main) {
  const code = await main(Deno.args);
  Deno.exit(code);
}
