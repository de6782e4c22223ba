/** What the conformance run is told on the command line. @module */
import { parseArgs } from "node:util";

/** Engines that can be judged. */
export const ENGINES = ["tensorflow", "wasm"] as const;

/** Name of one. */
export type EngineName = typeof ENGINES[number];

/** Settings of a run. */
export interface ConformanceOptions {
  readonly engine: EngineName;
  /** Parts of specs' names, one of which must occur; none: all run. */
  readonly filter: readonly string[];
  /** Whether recorded kernel calls run again as captured functions. */
  readonly capture: boolean;
  /** Whether wasm is compared with tfjs-backend-wasm as it is published. */
  readonly stock: boolean;
  readonly json: string | undefined;
  readonly help: boolean;
}

const OPTIONS = {
  engine: { type: "string", default: "tensorflow" },
  filter: { type: "string", multiple: true },
  "no-capture": { type: "boolean", default: false },
  "no-stock": { type: "boolean", default: false },
  json: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

/** The text of `--help`. */
export const HELP = `Runs tfjs-core's own published test suite on an engine.

Usage: deno task conformance [options]

  --engine NAME     tensorflow or wasm (tensorflow)
  --filter TEXT     only specs with TEXT in their name, such as "conv2d " or "gradient"; may be given again
  --no-capture      tensorflow: leave out the second pass, which runs the specs' kernel calls as captured
                    functions and compares them with what they gave one by one
  --no-stock        wasm: leave out tfjs-backend-wasm as it is published, which stands beside
  --json FILE       every spec and kernel, as JSON
  --help

Results go to standard output, progress to standard error. What may fail, and why, stands in
conformance/exceptions.ts. Exit code 0: nothing else failed, and all of that did.
`;

/**
 * Reads the command line.
 *
 * @throws {TypeError|RangeError} naming the value, what is expected and the remedy
 */
export function readOptions(args: string[]): ConformanceOptions {
  const values = parse(args);
  const { engine } = values;
  if (!(ENGINES as readonly string[]).includes(engine)) {
    throw new RangeError(`Cannot use --engine ${engine}: expected one of ${ENGINES.join(", ")}`);
  }
  if (values.filter?.includes("")) {
    throw new RangeError(
      'Cannot use --filter "": expected a part of a spec\'s name; leave it out to run all',
    );
  }
  if (values.json === "") throw new RangeError('Cannot use --json "": expected the path of a file');
  const only = engine === "tensorflow" ? "no-stock" : "no-capture";
  if (values[only]) {
    throw new RangeError(`Cannot use --${only} with engine ${engine}: leave it out; see --help`);
  }
  return {
    engine: engine as EngineName,
    filter: values.filter ?? [],
    capture: engine === "tensorflow" && !values["no-capture"],
    stock: engine === "wasm" && !values["no-stock"],
    json: values.json,
    help: values.help,
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS }).values;
  } catch (error) {
    throw new TypeError(`${(error as Error).message.replaceAll("\n", " ").replace(/\.$/, "")}; see --help`);
  }
}
