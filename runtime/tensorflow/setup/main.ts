/** The command `deno task setup`: fetches libtensorflow into Stagger's cache. @module */
import { commandLine } from "../../commands.ts";
import type { Build } from "../library/cache.ts";
import { findTensorflow } from "../library/find.ts";
import { setup } from "./setup.ts";
import { progressPrinter } from "./progress.ts";

const HELP = `Fetches the tensorflow engine (libtensorflow) into Stagger's cache. Does nothing if it is there.

Usage: deno task setup [options]

  --build cpu|cuda  Which build. Default: cuda on x86_64 with an NVIDIA GPU, else cpu
  --force           Fetch it even though a whole copy is there
  --strict          Exit with 1 if it fails. Without, a failure is told on standard error and the exit code is
                    0, since "deno task test" and "deno task bench" go on with what there is: a libtensorflow
                    of the system's or of Python's, else the wasm engine
  --help            Show this text

Needs Python 3 with pip (20.3 or newer); pip's own settings (index, proxy, cache) apply. The CPU build
downloads 0.3 GB and keeps 0.9 GB; the CUDA build downloads 3.4 GB and keeps 5.6 GB.

Environment:
  STAGGER_CACHE       The cache's folder. Default: $XDG_CACHE_HOME/stagger or ~/.cache/stagger
  STAGGER_TENSORFLOW  A libtensorflow of your own: a folder, or one of its libraries. Setup then fetches
                      nothing unless --build or --force is given

Exit code: 0 done, there already, or failed without --strict; 1 failed with --strict; 2 wrong arguments;
130 interrupted.
`;

Deno.exitCode = await main();

async function main(): Promise<number> {
  const options = await readArguments();
  if (typeof options === "number") return options;
  const interrupt = new AbortController();
  const stop = () => interrupt.abort(new Error("Interrupted"));
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  for (const signal of signals) Deno.addSignalListener(signal, stop);
  const progress = progressPrinter();
  const start = performance.now();
  try {
    const result = await setup({ ...options, signal: interrupt.signal, onProgress: progress.show });
    progress.clear();
    if (result.status === "installed") {
      const seconds = Math.round((performance.now() - start) / 1000);
      const size = `${(result.bytes / 1e9).toFixed(1)} GB`;
      console.error(`libtensorflow (${result.build}) is ready in ${result.folder}: ${size}, ${seconds} s`);
    } else if (Deno.stderr.isTerminal()) console.error(`libtensorflow is there: ${result.folder}`);
    return 0;
  } catch (error) {
    progress.clear();
    const message = error instanceof Error ? error.message : String(error);
    console.error(interrupt.signal.aborted || options.strict ? message : `${message}\n${consequence()}`);
    return interrupt.signal.aborted ? 130 : options.strict ? 1 : 0;
  } finally {
    for (const signal of signals) Deno.removeSignalListener(signal, stop);
  }
}

/** What Stagger does without. */
function consequence(): string {
  try {
    const found = findTensorflow();
    if (found !== undefined) return `Stagger uses the libtensorflow in ${found.directory}`;
    return `Stagger uses its wasm engine, which is slower, until "${commandLine("setup")}" succeeds`;
  } catch {
    return `Stagger cannot train until this is corrected`; // a named path that is wrong
  }
}

async function readArguments(): Promise<{ build?: Build; force?: boolean; strict?: boolean } | number> {
  if (Deno.args.length === 0) return {};
  try {
    // Loaded here, since that takes a third of the time when nothing is to do.
    const { parseArgs } = await import("node:util");
    const { values } = parseArgs({
      args: Deno.args.filter((arg) => arg !== "--"), // deno task hands it on
      options: {
        build: { type: "string" },
        force: { type: "boolean", default: false },
        strict: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) {
      console.log(HELP.trimEnd());
      return 0;
    }
    const { build, force, strict } = values;
    if (build !== undefined && build !== "cpu" && build !== "cuda") {
      throw new TypeError(`Cannot fetch build "${build}": use "cpu" or "cuda"`);
    }
    return { build, force, strict };
  } catch (error) {
    console.error(`${(error as Error).message}\nRun "deno task setup --help" for the options`);
    return 2;
  }
}
