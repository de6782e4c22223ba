/** Made-up but plausible results that the report's tests draw. @module */
import type {
  BenchResults,
  StepResults,
  StrategyResult,
  Timeline,
  TimelineEvent,
} from "../../bench/results.ts";

/** What took `rounds` seconds per step, against `single`'s rounds. */
function steps(rounds: readonly number[], single: readonly number[]): StepResults {
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
  const speedup = median(rounds.map((seconds, i) => single[i]! / seconds));
  return {
    secondsPerStep: median(rounds),
    rounds,
    imagesPerSecond: 32 / median(rounds),
    speedup,
    gainPercent: (speedup - 1) * 100,
    loss: 0.001234,
  };
}

/** A strategy that took `rounds` seconds per step, against `single`'s rounds. */
export function strategy(
  rounds: readonly number[],
  single: readonly number[],
  more: Partial<StrategyResult> = {},
): StrategyResult {
  return {
    ...steps(rounds, single),
    bubbleShare: 0,
    transferShare: 0,
    peakMemory: 2.7e9,
    hostMsPerAction: 0.31,
    cpuPerWall: 1,
    partition: [],
    microBatches: 1,
    captureSeconds: 1.9,
    ...more,
  };
}

const SINGLE = [0.801, 0.792, 0.85, 0.911, 0.823];
const scaled = (factor: number, noise: readonly number[]) =>
  SINGLE.map((s, i) => s * factor * (1 + noise[i]!));
const CUT = ["conv4_block3_1_conv"];
const PIPELINED = { partition: CUT, microBatches: 8, cpuPerWall: 1.9, transferShare: 0.0016 };

/** Two CPU devices, every strategy, two peers. */
export const RESULTS: BenchResults = {
  machine: {
    cpu: "Xeon & Sons <2.5 GHz>",
    cores: 2,
    memory: 16.4e9,
    os: "linux x86_64",
    deno: "2.9.6",
    gpus: [],
  },
  engine: "tensorflow 2.21.0",
  date: "2026-03-01T12:00:00.000Z",
  resnet50: {
    settings: {
      size: 128,
      batch: 32,
      microBatches: 8,
      steps: 5,
      devices: ["cpu:0", "cpu:1"],
      data: "synthetic",
      classes: 1000,
      loss: "meanSquaredError",
    },
    single: strategy(SINGLE, SINGLE),
    modelParallel: strategy(scaled(1.042, [0.01, -0.02, 0, 0.02, 0]), SINGLE, {
      partition: CUT,
      bubbleShare: 0.493,
      transferShare: 0.0021,
    }),
    pipeline: {
      gpipe: strategy(scaled(0.662, [0, 0.03, -0.02, 0.01, 0]), SINGLE, {
        ...PIPELINED,
        bubbleShare: 0.182,
        peakMemory: 2.6e9,
      }),
      "1f1b": strategy(scaled(0.655, [0.01, 0, 0.04, -0.01, 0]), SINGLE, {
        ...PIPELINED,
        bubbleShare: 0.171,
        peakMemory: 2.0e9,
      }),
      interleaved: strategy(scaled(0.7, [0.02, 0, 0.01, -0.03, 0]), SINGLE, {
        ...PIPELINED,
        partition: ["conv3_block1_1_conv", "conv4_block2_out", "conv5_block1_1_conv"],
        bubbleShare: 0.152,
        peakMemory: 2.3e9,
      }),
      "zero-bubble": strategy(scaled(0.552, [0, 0.01, 0.03, -0.02, 0]), SINGLE, {
        ...PIPELINED,
        bubbleShare: 0.043,
        peakMemory: 2.1e9,
      }),
    },
    peers: {
      "torch single": steps(scaled(1.33, [0.01, 0, 0.02, -0.01, 0]), SINGLE),
      "torch pipeline": steps(scaled(1.9, [0.02, 0, 0.01, -0.02, 0]), SINGLE),
    },
  },
};

/** Two devices, 1F1B without and with B and W apart; W of micro-batch 0 takes twice as long as its F. */
export function timeline(schedule = "zero-bubble", microBatches = 4): Timeline {
  const F = 30, B = 30, W = 60;
  const rows = ["cpu:0", "cpu:1"].map((device, stage) => {
    const events: TimelineEvent[] = [];
    let now = 0;
    const run = (kind: string, microBatch: number, ms: number) => {
      events.push({ kind, microBatch, start: now, end: now + ms });
      now += ms;
    };
    if (stage === 1) run("wait", -1, F);
    for (let i = 0; i < microBatches; i++) {
      run("F", i, F);
      if (i === microBatches - 1 && stage === 0) run("wait", -1, 45);
      if (stage === 1) run("B", i, B);
    }
    if (stage === 0) { for (let i = 0; i < microBatches; i++) run("B", i, B); }
    for (let i = 0; i < microBatches; i++) run("W", i, W);
    run("U", -1, 12);
    return { device, events };
  });
  return { schedule, rows };
}
