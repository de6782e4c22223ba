/** `deno task bench`: trains ResNet50 and U-Net with every strategy and compares them. @module */
import { describeError } from "../cli/describe_error.ts";
import { createProgress, type Progress } from "../cli/progress.ts";
import type { Outcome } from "./compare.ts";
import { type BenchCommand, type BenchOptions, HELP, readRuns } from "./options.ts";
import type { BenchResults } from "./results.ts";

/** Expected seconds of all phases, of PyTorch's, and of an enumeration. */
const SECONDS: Readonly<Record<BenchCommand, number>> = {
  resnet50: 145,
  unet: 178,
  convolutions: 145,
  allreduce: 145,
};
const TORCH_SECONDS = 30;
const ENUMERATION_SECONDS = 600;
/** Exit code after Ctrl-C, as shells have it. */
const INTERRUPTED = 130;

async function main(args: string[]): Promise<number> {
  let runs: BenchOptions[];
  try {
    runs = readRuns(args);
  } catch (error) {
    console.error((error as Error).message);
    return 2;
  }
  const [first] = runs as [BenchOptions];
  if (first.help) {
    console.log(HELP);
    return 0;
  }
  const total = runs.reduce((sum, run) => sum + expectedSeconds(run), 0);
  const progress = createProgress({ total });
  const interrupt = onInterrupt(progress);
  try {
    // Loaded after the first line of progress is out.
    if (first.command !== "convolutions") {
      const { checkPlaces } = await import("./report/write.ts");
      await checkPlaces(first.output, first.json);
    }
    if (first.torch) {
      const { checkTorch } = await import("./peers/torch.ts");
      await checkTorch(first.torch);
    }
    if (first.command === "allreduce") {
      const { runAllreduce } = await import("./allreduce/run.ts");
      return await runAllreduce(first, progress, total, interrupt.raised);
    }
    const { benchDevices } = await import("./devices.ts");
    const devices = benchDevices(first.devices);
    const { checkInputs } = await import("./check_inputs.ts");
    for (const run of runs) await checkInputs(run, devices.length);
    const { fetchEngine } = await import("../cli/fetch_engine.ts");
    await fetchEngine(first.engine, progress);
    if (first.command === "convolutions") {
      progress.phase("timing convolutions", SECONDS.convolutions);
      const { convolutionTable } = await import("./convolutions/table.ts");
      const { measureConvolutions } = first.engine === "wasm"
        ? await import("./convolutions/wasm.ts")
        : await import("./convolutions/tensorflow.ts");
      const timings = await measureConvolutions(first, progress);
      progress.done();
      console.log(convolutionTable(timings));
      return 0;
    }
    const { outcomes, failure } = await runAll(runs, devices, progress, interrupt.raised);
    if (outcomes.length > 0) await report(outcomes, first, progress, interrupt.raised());
    if (failure !== undefined) console.error(failure);
    return failure !== undefined ? 1 : interrupt.raised() ? INTERRUPTED : 0;
  } catch (error) {
    progress.log(describeError(error));
    return 1;
  } finally {
    progress[Symbol.dispose]();
    interrupt.stop();
  }
}

/** Seconds that a run is expected to take. */
function expectedSeconds({ command, torch, enumerate }: BenchOptions): number {
  const enumeration = command === "unet" && enumerate ? ENUMERATION_SECONDS : 0;
  return SECONDS[command] + (torch ? TORCH_SECONDS : 0) + enumeration;
}

/** Runs comparisons one after the other. One that fails, or is broken off, is the last; what was measured is kept. */
async function runAll(
  runs: readonly BenchOptions[],
  devices: readonly string[],
  progress: Progress,
  stopped: () => boolean,
): Promise<{ outcomes: Outcome[]; failure?: string }> {
  const outcomes: Outcome[] = [];
  for (const run of runs) {
    if (stopped()) break;
    try {
      const outcome = run.command === "unet"
        ? await (await import("./unet.ts")).compareUnet(run, devices, progress, stopped)
        : await (await import("./resnet50.ts")).compareResnet50(run, devices, progress, stopped);
      outcomes.push(outcome);
      const { rounds, steps, failure } = outcome;
      const how = `${run.command}, after ${rounds} of ${steps} rounds`;
      if (failure !== undefined) return { outcomes, failure: `Stopped ${how}: ${describeError(failure)}` };
      if (stopped()) progress.log(`Interrupted ${how}`);
    } catch (error) {
      return { outcomes, failure: describeError(error) };
    }
  }
  return { outcomes };
}

/** Prints the tables and writes the report. */
async function report(
  outcomes: readonly Outcome[],
  { output, json }: BenchOptions,
  progress: Progress,
  interrupted: boolean,
): Promise<void> {
  progress.phase("writing the report", 3);
  const { writeReport } = await import("./report/write.ts");
  const { resultsTable } = await import("./report/table.ts");
  progress.done();
  const results: BenchResults = Object.assign(
    {},
    ...outcomes.map((outcome) => outcome.results),
    interrupted ? { interrupted } : {},
  );
  console.log(resultsTable(results));
  const timelines = Object.fromEntries(
    outcomes.map((outcome) => [outcome.results.unet ? "unet" : "resnet50", outcome.timelines]),
  );
  const examples = outcomes.flatMap((outcome) => outcome.examples ?? []);
  const paths = await writeReport(results, { timelines, examples }, output, json);
  console.log(`\nReport: ${paths.html}\nFigures: ${paths.json}`);
}

/** The first Ctrl-C ends after the present round and keeps what was measured; the second ends at once. */
function onInterrupt(progress: Progress) {
  let raised = false;
  const handler = () => {
    if (raised) Deno.exit(INTERRUPTED);
    raised = true;
    progress.log("Stopping soon and keeping what was measured; press Ctrl-C again to stop at once");
  };
  Deno.addSignalListener("SIGINT", handler);
  return { raised: () => raised, stop: () => Deno.removeSignalListener("SIGINT", handler) };
}

if (import.meta.main) {
  const code = await main(Deno.args);
  Deno.exit(code);
}
