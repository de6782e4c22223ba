/**
 * Progress of a long command on standard error: a bar on a terminal, now and then a line elsewhere.
 *
 * Our own few lines rather than cli-progress, whose timers keep the process alive, whose bar has no place for
 * lines above it, which prints every two seconds where there is no terminal whether or not there is news, and
 * whose way to restore the terminal takes Ctrl-C from the program. Nothing is to be restored here: the cursor
 * is never hidden.
 * @module
 */

const BAR = 24; // characters
const FRAME_MS = 250; // least time between two frames of the bar
const IDLE_MS = 1000; // the bar's clock goes on at this pace without news
const LINE_MS = 5000; // least time between two lines elsewhere, but for those of a new phase
const SILENCE_MS = 30_000; // elsewhere, a line at least this often shows that the command lives
const TRUSTED = 0.1; // share of a phase after which its own pace tells when it ends

/** Where progress is shown: `Deno.stderr`, or a stand-in. */
export interface ProgressStream {
  isTerminal(): boolean;
  writeSync(bytes: Uint8Array): number;
}

/** How progress is counted and shown. */
export interface ProgressOptions {
  /** Sum of the weights of all phases. Default: 1. */
  readonly total?: number;
  /** Default: standard error. */
  readonly stream?: ProgressStream;
  /** The clock, in milliseconds. Default: `performance.now`. */
  now?(): number;
}

/** A display of progress. `done` or disposal ends it; the process needs neither to end. */
export interface Progress extends Disposable {
  /**
   * Begins the next phase; `weight` is its part of the whole, as expected seconds or a share. One of weight 0
   * may take long or not: the end is estimated without it.
   */
  phase(name: string, weight?: number): void;
  /** Says how far the phase is: a fraction, or `[n, m]` for n of m; and what is being done. */
  tick(progress: number | readonly [n: number, m: number], detail?: string): void;
  /** Prints a line above the bar. */
  log(line: string): void;
  /** Everything is done: the last line says how long it took. */
  done(): void;
}

/** Begins to show progress, at once. */
export function createProgress(options: ProgressOptions = {}): Progress {
  return new Display(options);
}

class Display implements Progress {
  readonly #total: number;
  readonly #stream: ProgressStream;
  readonly #now: () => number;
  readonly #terminal: boolean;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #onUnload = () => this.#end();
  readonly #start: number;
  #name = "starting";
  #detail = "";
  #weight = 0;
  #finished = 0; // weight of the phases before
  #fraction = 0; // of the phase
  #phaseStart: number;
  #weighed = 0; // milliseconds of the phases before that had a weight
  #eta: { readonly at: number; readonly ms: number } | undefined;
  #shown = -Infinity; // when the last frame or line was
  #news = false; // since then
  #ended = false;

  constructor({ total = 1, stream = Deno.stderr, now = () => performance.now() }: ProgressOptions) {
    if (!(total > 0)) {
      throw new RangeError(`Cannot show progress of a total of ${total}: expected more than 0`);
    }
    this.#total = total;
    this.#stream = stream;
    this.#now = now;
    this.#terminal = stream.isTerminal();
    this.#start = this.#phaseStart = now();
    this.#timer = setInterval(() => this.#show(), this.#terminal ? IDLE_MS : LINE_MS);
    Deno.unrefTimer(this.#timer);
    globalThis.addEventListener("unload", this.#onUnload);
    this.#draw();
  }

  phase(name: string, weight = 0): void {
    if (this.#ended) return;
    this.#finished += this.#weight;
    if (this.#weight > 0) this.#weighed += this.#now() - this.#phaseStart;
    this.#weight = weight;
    this.#name = oneLine(name);
    this.#detail = "";
    this.#fraction = 0;
    this.#phaseStart = this.#now();
    this.#estimate();
    this.#draw();
  }

  tick(progress: number | readonly [n: number, m: number], detail?: string): void {
    if (this.#ended) return;
    const fraction = typeof progress === "number" ? progress : progress[0] / progress[1];
    this.#fraction = Math.min(1, Math.max(0, fraction || 0));
    if (detail !== undefined) this.#detail = oneLine(detail);
    this.#estimate();
    this.#news = true;
    this.#show();
  }

  log(line: string): void {
    if (!this.#terminal || this.#ended) return this.#write(`${line}\n`);
    this.#write(`\r\x1b[K${line}\n`);
    this.#draw();
  }

  done(): void {
    if (this.#ended) return;
    this.#finished = this.#total;
    this.#weight = 0;
    this.#name = `done in ${duration(this.#now() - this.#start)}`;
    this.#detail = "";
    this.#eta = undefined;
    this.#draw();
    this.#end();
  }

  [Symbol.dispose](): void {
    this.#end();
  }

  /** Share of the whole that is done, 0 to 1. */
  get #done(): number {
    return Math.min(1, (this.#finished + this.#weight * this.#fraction) / this.#total);
  }

  /**
   * The rest of this phase at its own pace once that can be told, the other phases at the pace of all that
   * was done so far. Counted down between ticks.
   */
  #estimate(): void {
    const at = this.#now();
    const done = this.#done * this.#total;
    if (done <= 0) return;
    const inPhase = at - this.#phaseStart;
    const pace = (this.#weighed + (this.#weight > 0 ? inPhase : 0)) / done; // milliseconds per weight
    const restOfPhase = this.#fraction >= TRUSTED
      ? inPhase * (1 - this.#fraction) / this.#fraction
      : this.#weight * (1 - this.#fraction) * pace;
    const later = Math.max(0, this.#total - this.#finished - this.#weight);
    this.#eta = { at, ms: restOfPhase + later * pace };
  }

  /** Draws if it is time to. */
  #show(): void {
    const quiet = this.#now() - this.#shown;
    const wait = this.#terminal
      ? (this.#news ? FRAME_MS : IDLE_MS / 2) // half: the timer itself may come a little early
      : (this.#news ? LINE_MS : SILENCE_MS);
    if (!this.#ended && quiet >= wait) this.#draw();
  }

  #draw(): void {
    this.#shown = this.#now();
    this.#news = false;
    const percent = `${String(Math.floor(this.#done * 100)).padStart(3)} %`;
    const activity = this.#detail === "" ? this.#name : `${this.#name}: ${this.#detail}`;
    const eta = this.#eta === undefined
      ? ""
      : `  ETA ${duration(Math.max(0, this.#eta.ms - (this.#shown - this.#eta.at)))}`;
    if (!this.#terminal) return this.#write(`${percent}${eta}  ${activity}\n`);
    const full = Math.floor(this.#done * BAR);
    const line = `${"█".repeat(full)}${"░".repeat(BAR - full)} ${percent}${eta}  ${activity}`;
    this.#write(`\r${line.slice(0, terminalWidth() - 1)}\x1b[K`);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#timer);
    globalThis.removeEventListener("unload", this.#onUnload);
    if (this.#terminal) this.#write("\n");
  }

  #write(text: string): void {
    let bytes: Uint8Array = new TextEncoder().encode(text);
    try {
      while (bytes.length > 0) bytes = bytes.subarray(this.#stream.writeSync(bytes));
    } catch {
      // Nobody reads it any more: no reason to stop what it is the progress of.
    }
  }
}

function terminalWidth(): number {
  try {
    return Deno.consoleSize().columns || 80; // a terminal without a size says 0
  } catch {
    return 80;
  }
}

/** "0:42", "1:02:03" */
function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = (seconds % 3600) / 60;
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(seconds % 60)}`
    : `${Math.floor(minutes)}:${two(seconds % 60)}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
