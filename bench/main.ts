/** `deno task bench`: trains ResNet50 with every strategy and compares them. @module */
import { describeError } from "../cli/describe_error.ts";
import { createProgress, type Progress } from "../cli/progress.ts";
import { type BenchOptions, HELP, readOptions } from "./options.ts";

/** Expected seconds of all phases, and of PyTorch's. */
const TOTAL = 145;
const TORCH = 30;
/** Exit code after Ctrl-C, as shells have it. */
const INTERRUPTED = 130;

async function main(args: string[]): Promise<number> {
  let options: BenchOptions;
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
  const total = TOTAL + (options.torch ? TORCH : 0);
  const progress = createProgress({ total });
  const interrupt = onInterrupt(progress);
  try {
    // Loaded after the first line of progress is out.
    if (options.command !== "convolutions") {
      const { checkPlaces } = await import("./report/write.ts");
      await checkPlaces(options.output, options.json);
    }
    if (options.torch) {
      const { checkTorch } = await import("./peers/torch.ts");
      await checkTorch(options.torch);
    }
    if (options.command === "allreduce") {
      const { runAllreduce } = await import("./allreduce/run.ts");
      return await runAllreduce(options, progress, total, interrupt.raised);
    }
    const { benchDevices } = await import("./devices.ts");
    const devices = benchDevices(options.devices);
    const { fetchEngine } = await import("../cli/fetch_engine.ts");
    await fetchEngine(options.engine, progress);
    if (options.command === "convolutions") {
      progress.phase("timing convolutions", TOTAL);
      const { convolutionTable } = await import("./convolutions/table.ts");
      const { measureConvolutions } = options.engine === "wasm"
        ? await import("./convolutions/wasm.ts")
        : await import("./convolutions/tensorflow.ts");
      const timings = await measureConvolutions(options, progress);
      progress.done();
      console.log(convolutionTable(timings));
      return 0;
    }
    const { compareResnet50 } = await import("./resnet50.ts");
    const { results, timelines, rounds, failure } = await compareResnet50(
      options,
      devices,
      progress,
      interrupt.raised,
    );
    progress.phase("writing the report", 3);
    const { writeReport } = await import("./report/write.ts");
    const { resultsTable } = await import("./report/table.ts");
    progress.done();
    console.log(resultsTable(results));
    const paths = await writeReport(
      results,
      { timelines: { resnet50: timelines } },
      options.output,
      options.json,
    );
    console.log(`\nReport: ${paths.html}\nFigures: ${paths.json}`);
    if (interrupt.raised()) console.error(`Interrupted after ${rounds} of ${options.steps} rounds`);
    if (failure !== undefined) {
      console.error(`Stopped after ${rounds} of ${options.steps} rounds: ${describeError(failure)}`);
      return 1;
    }
    return interrupt.raised() ? INTERRUPTED : 0;
  } catch (error) {
    progress.log(describeError(error));
    return 1;
  } finally {
    progress[Symbol.dispose]();
    interrupt.stop();
  }
}

/** The first Ctrl-C ends after the present round and keeps what was measured; the second ends at once. */
function onInterrupt(progress: Progress) {
  let raised = false;
  const handler = () => {
    if (raised) Deno.exit(INTERRUPTED);
    raised = true;
    progress.log("Stopping after this round; press Ctrl-C again to stop at once");
  };
  Deno.addSignalListener("SIGINT", handler);
  return { raised: () => raised, stop: () => Deno.removeSignalListener("SIGINT", handler) };
}

if (import.meta.main) {
  const code = await main(Deno.args);
  Deno.exit(code);
}
