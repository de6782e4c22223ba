/** `deno task bench allreduce`: measures, prints the table and writes the report. @module */
import { describeError } from "../../cli/describe_error.ts";
import type { Progress } from "../../cli/progress.ts";
import { machineInfo } from "../../runtime/machine/machine.ts";
import type { BenchOptions } from "../options.ts";
import { writeReport } from "../report/write.ts";
import type { BenchResults } from "../results.ts";
import { measureAllreduce } from "./measure.ts";
import { allreduceTable } from "./table.ts";

/** Exit code after Ctrl-C, as shells have it. */
const INTERRUPTED = 130;

/** Sums are not an engine's work. */
const ENGINE = "no engine";

/**
 * Runs it.
 *
 * @param weight of all of it in the progress
 * @param stopped asked after every round; true ends them, and what was measured is kept
 * @returns the exit code
 */
export async function runAllreduce(
  options: BenchOptions,
  progress: Progress,
  weight: number,
  stopped: () => boolean,
): Promise<number> {
  const { workers, bytes, steps, torch } = options;
  const measured = await measureAllreduce(
    { workers, bytes, rounds: steps, torch },
    progress,
    weight,
    stopped,
  );
  const results: BenchResults = {
    machine: machineInfo(),
    engine: ENGINE,
    date: new Date().toISOString(),
    ...(stopped() ? { interrupted: true } : {}),
    allreduce: measured.results,
  };
  progress.done();
  console.log(allreduceTable(measured.results));
  const paths = await writeReport(results, {}, options.output, options.json);
  console.log(`Report: ${paths.html}\nFigures: ${paths.json}`);
  if (stopped()) console.error("Interrupted: what was measured before is kept");
  if (measured.failure === undefined) return stopped() ? INTERRUPTED : 0;
  console.error(`Stopped before all was measured: ${describeError(measured.failure)}`);
  return 1;
}
