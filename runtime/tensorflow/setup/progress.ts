/** Shows on standard error how far setup is: a bar on a terminal, plain lines elsewhere. @module */
import type { SetupProgress } from "./setup.ts";

/** Where the text goes. */
export interface ProgressOutput {
  /** Whether a line may be drawn over. */
  readonly terminal: boolean;
  /** Characters in a line. */
  readonly width: number;
  write(text: string): void;
}

/** Standard error. */
export function standardError(): ProgressOutput {
  const encoder = new TextEncoder();
  const terminal = Deno.stderr.isTerminal();
  return {
    terminal,
    width: terminal ? Deno.consoleSize().columns : 80,
    write: (text) => void Deno.stderr.writeSync(encoder.encode(text)),
  };
}

/** Shows setup's progress. */
export interface ProgressPrinter {
  /** For setup's `onProgress`. */
  show(progress: SetupProgress): void;
  /** Takes the bar away, so that other text can follow. */
  clear(): void;
}

/** Milliseconds between two drawings of the bar. */
const DRAW_MS = 100;

/** Elsewhere than on a terminal, a line comes after each of this many parts of a download... */
const SHARES = 4;

/** ... of at least this many bytes. */
const LARGE = 100e6;

/** Printer of progress to `output`. */
export function progressPrinter(output: ProgressOutput = standardError()): ProgressPrinter {
  let current = "";
  let started = 0;
  let drawn = 0;
  let share = 0;
  const clear = () => {
    if (output.terminal && drawn > 0) output.write("\r\x1b[K");
    drawn = 0;
  };
  return {
    clear,
    show(progress) {
      const now = performance.now();
      const key = `${progress.step} ${progress.item}`;
      const begins = key !== current;
      if (begins) [current, started, share, drawn] = [key, now, 0, output.terminal ? drawn : 0];
      if (output.terminal) {
        if (!begins && now - drawn < DRAW_MS) return;
        drawn = now;
        output.write(`\r\x1b[K${barLine(progress, (now - started) / 1000, output.width - 1)}`);
        return;
      }
      if (begins) output.write(`${title(progress)}\n`);
      if (progress.step !== "download" || (progress.total ?? 0) < LARGE) return;
      const reached = Math.floor(progress.done / progress.total! * SHARES);
      if (reached <= share || reached >= SHARES) return;
      share = reached;
      output.write(`${title(progress)}: ${100 * reached / SHARES}% of ${megabytes(progress.total!)}\n`);
    },
  };
}

function title({ step, item, index, count }: SetupProgress): string {
  if (step === "wait") return `Waiting for another setup (${item})`;
  const number = count > 1 ? ` (${index} of ${count})` : "";
  // pip's "name==1.2" and "name<2.0,>=1.2".
  const name = item.replace("==", " ").replace(/[<>!~].*/, "");
  return `${step === "download" ? "Fetching" : "Unpacking"} ${name}${number}`;
}

const BAR = 20;

function barLine(progress: SetupProgress, seconds: number, width: number): string {
  const { done, total } = progress;
  let line = title(progress);
  if (total) {
    const part = Math.min(1, done / total);
    const full = Math.round(BAR * part);
    const rest = part > 0.01 ? seconds / part * (1 - part) : undefined;
    line += ` [${"#".repeat(full)}${"-".repeat(BAR - full)}] ${Math.floor(100 * part)}% of ${
      megabytes(total)
    }`;
    if (rest !== undefined) line += `, ${duration(rest)} left`;
  } else if (done > 0) line += ` ${megabytes(done)}`;
  return line.length <= width ? line : line.slice(0, width);
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
