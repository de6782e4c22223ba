/** Made-up but plausible results that the report's tests draw. @module */
import type {
  BenchResults,
  CutResult,
  Example,
  StepResults,
  StrategyResult,
  Timeline,
  TimelineEvent,
  UnetResults,
  UnetStrategyResult,
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

function trained(
  rounds: readonly number[],
  iou: number,
  more: Partial<StrategyResult> = {},
): UnetStrategyResult {
  const result = strategy(rounds, SINGLE, more);
  return {
    ...result,
    secondsPerEpoch: result.secondsPerStep * 60,
    evaluation: { steps: 6, loss: 0.4, iou },
  };
}

const DECODER = { partition: ["decoder4"], microBatches: 4 };
const cut = (partition: string, splitSize: number, seconds: number, predictedSeconds: number): CutResult => ({
  partition: [partition],
  splitSize,
  predictedSeconds,
  secondsPerStep: seconds,
  rounds: [seconds, seconds],
  singleRounds: [0.9, 0.9],
  speedup: 0.9 / seconds,
});

/** A U-Net comparison of two partitions and three split sizes; the prediction prefers another than the best. */
export const UNET: UnetResults = {
  settings: {
    size: 64,
    batch: 16,
    steps: 5,
    devices: ["cpu:0", "cpu:1"],
    data: "digits",
    samples: 960,
    heldOut: 64,
    stepsPerEpoch: 60,
    loss: "bceDiceLoss",
    optimizer: "sgd",
  },
  single: trained(SINGLE, 0.71),
  dataParallel: {
    ring: trained(SINGLE.map((s) => s / 1.85), 0.7, { cpuPerWall: 1.9 }),
    parameterServer: trained(SINGLE.map((s) => s / 1.7), 0.7, { cpuPerWall: 1.9 }),
  },
  modelParallel: trained(SINGLE.map((s) => s * 1.02), 0.69, DECODER),
  pipeline: {
    best: {
      ...trained(SINGLE.map((s) => s / 1.5), 0.68, DECODER),
      splitSize: 4,
      schedule: "1f1b",
      chosenBy: "measured",
    },
    table: [
      cut("encoder3", 1, 1.2, 1.32),
      cut("encoder3", 4, 0.618, 0.605),
      cut("encoder3", 16, 0.9, 0.9),
      cut("decoder4", 1, 1.1, 1.1),
      cut("decoder4", 4, 0.6, 0.61),
      { partition: ["decoder4"], splitSize: 16, predictedSeconds: 0.93 },
    ],
  },
  peers: {
    "torch single": { ...steps(SINGLE.map((s) => s * 1.2), SINGLE), secondsPerEpoch: 60 },
  },
};

/** Two pixels by one. */
export const EXAMPLE: Example = {
  height: 1,
  width: 2,
  image: Uint8Array.of(255, 0, 128, 1, 2, 3),
  mask: Uint8Array.of(0, 255),
  prediction: Uint8Array.of(7, 200),
};
