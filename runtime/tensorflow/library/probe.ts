/**
 * Loads a libtensorflow to see whether it works, in a process of its own: one made for another processor
 * ends its process, and TensorFlow's log lines must not reach the user's terminal.
 * @module
 */
import type { FoundTensorflow } from "./find.ts";

/** What a libtensorflow says of itself. */
export interface Probe {
  /** TensorFlow's version, such as "2.21.0". */
  readonly version?: string;
  /** Devices that it sees, by their kind and number: "CPU:0", "GPU:0". */
  readonly devices: readonly string[];
  /** Why it does not work; undefined if it does. */
  readonly fault?: string;
  /** Whether it takes its process along, so that nothing can take its place. */
  readonly fatal?: boolean;
  /** Lines of its log that say why it sees no GPU, or fewer. */
  readonly gpuLog: readonly string[];
}

/** Seconds after which it is given up: on a machine with eight GPUs starting takes some ten. */
const TIMEOUT_S = 120;

/** Lines of TensorFlow's log about GPUs that it does not use. */
const GPU_LINES =
  /dlopen|dynamic library|cuda drivers|failed call to cuInit|Ignoring visible gpu|skipping registering/i;

/** Loads `found`, asks its version and devices. Takes a second or two, more with GPUs. */
export async function probeTensorflow(found: FoundTensorflow): Promise<Probe> {
  const program = new URL("./probe_main.ts", import.meta.url).href;
  const { cc, framework, cudaLibraries } = found;
  const command = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--no-config", "--allow-read", "--allow-env", "--allow-ffi"],
      ...[program, JSON.stringify({ cc, framework, cudaLibraries })],
    ],
    env: found.build === "cpu" ? {} : { TF_CPP_MIN_LOG_LEVEL: "0" }, // its log says what it lacks
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(TIMEOUT_S * 1000),
  });
  const { code, signal, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  const log = decoder.decode(stderr).split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const gpuLog = log.filter((line) => GPU_LINES.test(line)).map(withoutPrefix);
  try {
    // Its last line: whatever a library writes to standard output stands before.
    const answer = JSON.parse(decoder.decode(stdout).trim().split("\n").at(-1) ?? "");
    return { devices: [], ...answer, gpuLog };
  } catch {
    const reason = signal === "SIGTERM"
      ? `gave no answer within ${TIMEOUT_S} s`
      : signal === "SIGILL"
      ? "uses instructions that this processor does not have"
      : `ended its process with ${signal ?? `exit code ${code}`}`;
    const last = log.at(-1);
    const fault = last === undefined ? reason : `${reason}: ${withoutPrefix(last)}`;
    return { devices: [], fault, fatal: true, gpuLog };
  }
}

/** A log line without time, file and line: "2025-01-01 10:00:00.1: W tsl/x.cc:1] text". */
function withoutPrefix(line: string): string {
  return line.replace(/^.*?\] /, "");
}
