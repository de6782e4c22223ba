/** One strategy in the comparison: its trainer, stepped in turn with the others', and what was measured. @module */
import process from "node:process";
import type { tf } from "../deps.ts";
import type { Samples } from "../runtime/data/samples.ts";
import type { ProgressReport } from "../runtime/coordinator/coordinator.ts";
import type { StepResult } from "../runtime/coordinator/step_result.ts";
import { distribute } from "../runtime/distribute.ts";
import type { DistributeOptions } from "../runtime/options.ts";
import type { TraceEvent } from "../runtime/protocol.ts";
import type { Trainer } from "../runtime/trainer/trainer.ts";
import type { CompileArgs } from "../runtime/trainer/trainer_args.ts";
import { median } from "./median.ts";
import { peakDuring, residentBytes } from "./memory.ts";
import type { StrategyResult, Timeline, TimelineEvent } from "./results.ts";

/** What a reader calls a strategy, where that is not its name. */
const TITLES: Readonly<Record<string, string>> = {
  ring: "data parallel ring",
  parameterServer: "data parallel parameter server",
  modelParallel: "model parallel",
};

/** What every strategy trains. */
export interface Task {
  readonly makeModel: () => tf.LayersModel;
  /** Optimizer, loss and metrics; made anew for each trainer. */
  readonly compile: () => CompileArgs;
  readonly data: Samples;
  readonly batch: number;
}

/** One measured round. */
interface Round {
  readonly seconds: number;
  readonly loss: number;
  readonly cpuPerWall: number;
  readonly trace: readonly (readonly TraceEvent[])[];
}

/** A strategy that takes part. */
export class Contestant {
  readonly #rounds: Round[] = [];
  #peakMemory: number | undefined;
  #steps: AsyncGenerator<StepResult, void, void> | undefined;

  private constructor(readonly name: string, readonly trainer: Trainer, readonly task: Task) {}

  /** Builds model and trainer and brings the stages up. */
  static async enter(
    name: string,
    task: Task,
    options: DistributeOptions,
    progress: ProgressReport,
  ): Promise<Contestant> {
    const model = task.makeModel();
    const trainer = await distribute(model, options, progress);
    trainer.compile(task.compile());
    trainer.trace = true;
    await trainer.prepare(task.data, { batchSize: task.batch });
    return new Contestant(name, trainer, task);
  }

  /** Rounds measured so far. */
  get rounds(): readonly number[] {
    return this.#rounds.map(({ seconds }) => seconds);
  }

  /**
   * One step that is not timed: it warms up, and shows the memory that a step takes, above what the process
   * holds before it. What the trainer itself holds from step to step is added.
   */
  async warmUp(): Promise<void> {
    const { batch } = this.task;
    this.#steps = this.trainer.steps(this.task.data, { batchSize: batch });
    const before = residentBytes();
    const { peak } = await peakDuring(() => this.#steps!.next());
    if (peak !== undefined && before !== undefined) {
      this.#peakMemory = peak - before + this.trainer.heldBytes;
    }
  }

  /** Forgets what came after so many rounds: another did not finish them. */
  keep(rounds: number): void {
    this.#rounds.length = rounds;
  }

  /** One timed step. */
  async step(): Promise<void> {
    const cpu = process.cpuUsage();
    const start = performance.now();
    const { value } = await this.#steps!.next();
    const wall = performance.now() - start;
    const used = process.cpuUsage(cpu);
    const result = value as StepResult;
    this.#rounds.push({
      seconds: result.wallMs / 1000,
      loss: result.values[0]!,
      cpuPerWall: (used.user + used.system) / 1000 / wall,
      trace: result.trace,
    });
  }

  /** What was measured, against the rounds of `single`. */
  result(single: readonly number[] | undefined): StrategyResult {
    const seconds = median(this.rounds);
    const speedup = single ? median(this.rounds.map((s, i) => single[i]! / s)) : NaN;
    const shares = this.#rounds.map(({ trace }) => stepShares(trace));
    const { captureSeconds, options: { microBatches, splitSize }, partition } = this.trainer;
    const { batch } = this.task;
    return {
      secondsPerStep: seconds,
      rounds: this.rounds,
      imagesPerSecond: batch / seconds,
      speedup,
      gainPercent: (speedup - 1) * 100,
      loss: this.#rounds.at(-1)?.loss ?? NaN,
      bubbleShare: median(shares.map(({ bubble }) => bubble)),
      transferShare: median(shares.map(({ transfer }) => transfer)),
      ...(this.#peakMemory === undefined ? {} : { peakMemory: this.#peakMemory }),
      hostMsPerAction: median(shares.map(({ hostMs }) => hostMs)),
      cpuPerWall: median(this.#rounds.map(({ cpuPerWall }) => cpuPerWall)),
      partition,
      microBatches: splitSize === undefined ? microBatches : Math.ceil(batch / splitSize),
      captureSeconds,
    };
  }

  /** The last step, drawn from what ran. */
  timeline(): Timeline | undefined {
    const trace = this.#rounds.at(-1)?.trace;
    if (!trace || trace.length < 2) return undefined;
    const start = Math.min(...trace.map((events) => events[0]?.start ?? Infinity));
    return {
      schedule: TITLES[this.name] ?? this.name,
      rows: trace.map((events, stage) => ({
        device: this.trainer.options.devices[stage]!.name,
        events: events.flatMap((event) => timelineEvents(event, start)),
      })),
    };
  }

  /** Ends training, so that the trainer can be asked for other things. */
  async finish(): Promise<void> {
    await this.#steps?.return();
  }

  async leave(): Promise<void> {
    await this.finish();
    await this.trainer.dispose();
  }
}

/** Shares of one step: of all devices' time from the first start to the last end. */
function stepShares(
  trace: readonly (readonly TraceEvent[])[],
): { bubble: number; transfer: number; hostMs: number } {
  const events = trace.flat();
  const span = Math.max(...events.map((e) => e.end)) - Math.min(...events.map((e) => e.start));
  const busy = events.reduce((sum, e) => sum + e.end - e.start - e.wait, 0);
  const copy = events.reduce((sum, e) => sum + e.copy, 0);
  const engine = events.reduce((sum, e) => sum + e.engine, 0);
  const all = span * trace.length;
  return { bubble: 1 - busy / all, transfer: copy / all, hostMs: (busy - copy - engine) / events.length };
}

function timelineEvents({ action, start, end, wait }: TraceEvent, zero: number): TimelineEvent[] {
  const from = start - zero;
  const work = {
    kind: action.kind,
    microBatch: action.microBatch,
    count: action.count,
    start: from + wait,
    end: end - zero,
  };
  return wait > 0.5
    ? [{ kind: "wait", microBatch: action.microBatch, start: from, end: from + wait }, work]
    : [work];
}
