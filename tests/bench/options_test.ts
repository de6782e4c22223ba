/** The benchmark's command line: defaults as documented, and bad values refused before any work. */
import assert from "node:assert/strict";
import { BENCH_STRATEGIES, type BenchOptions, COMMANDS, HELP, readRuns } from "../../bench/options.ts";
import { SCHEDULES } from "../../runtime/schedules/schedules.ts";

/** The one run of a command, ResNet50's where none is named. */
function readOptions(args: string[]): BenchOptions {
  const named = (COMMANDS as readonly string[]).includes(args[0] ?? "");
  return readRuns(named ? args : ["resnet50", ...args])[0]!;
}

Deno.test("without options the published sizes are run with every strategy", () => {
  assert.deepEqual(readOptions([]), {
    command: "resnet50",
    size: 128,
    model: "resnet50",
    batch: 32,
    microBatches: 8,
    steps: 5,
    devices: undefined,
    engine: "auto",
    strategies: ["single", "dataParallel", "modelParallel", "pipeline"],
    schedules: ["gpipe", "1f1b", "zero-bubble"],
    partition: "auto",
    data: "mnist",
    enumerate: false,
    epochs: undefined,
    splitSize: undefined,
    output: "bench-results",
    json: undefined,
    torch: undefined,
    workers: [2, 3, 4, 6, 8],
    bytes: [4e3, 4e4, 4e5, 4e6, 4e7, 1e8, 4e8],
    help: false,
  });
});

Deno.test("--full is the published setting, and single options still decide", () => {
  const { batch, data } = readOptions(["--full"]);
  assert.deepEqual([batch, data], [120, "synthetic"]);
  assert.deepEqual(readOptions(["--full", "--batch", "24", "--data", "mnist"]).batch, 24);
});

Deno.test("convolutions are those of the model that is named", () => {
  const { command, model, batch } = readOptions(["convolutions", "--model", "unet"]);
  assert.deepEqual([command, model, batch], ["convolutions", "unet", 4]);
});

Deno.test("lists are read without spaces and repetitions", () => {
  const { devices, schedules, partition } = readOptions([
    "--devices=cuda:0, cuda:1",
    "--schedule=1f1b,1f1b",
    "--partition",
    "conv4_block1_1_conv,120",
  ]);
  assert.deepEqual(devices, ["cuda:0", "cuda:1"]);
  assert.deepEqual(schedules, ["1f1b"]);
  assert.deepEqual(partition, ["conv4_block1_1_conv", 120]);
});

for (
  const [args, message] of [
    [["u-net"], /Cannot run "resnet50 u-net": expected one of resnet50, unet, convolutions, allreduce/],
    [["more"], /Cannot run "resnet50 more"/],
    [["--size", "0"], /Cannot use --size 0: expected an integer >= 1/],
    [["--batch", "many"], /Cannot use --batch many/],
    [["--steps", "1.5"], /Cannot use --steps 1.5/],
    [["--batch", "4"], /Cannot cut a batch of 4 into 8 micro-batches.*--batch/],
    [["--engine", "webgpu"], /Cannot use --engine webgpu: expected some of auto,tensorflow,wasm/],
    [["--strategies", "tensorParallel"], /Cannot use --strategies tensorParallel/],
    [["--strategies", ","], /Cannot use --strategies ",": expected some of single/],
    [["--schedule", "2f2b"], /Cannot use --schedule 2f2b: expected some of gpipe,1f1b,zero-bubble/],
    [["--schedule", ""], /Cannot use --schedule ""/],
    [["allreduce", "--workers", "1"], /Cannot use --workers "1": expected integers >= 2, such as 2,3,4,6,8/],
    [["allreduce", "--workers", ""], /Cannot use --workers ""/],
    [["allreduce", "--bytes", "4e3,6"], /Cannot use --bytes "4e3,6": expected multiples of 4 >= 4/],
    [["allreduce", "--bytes", "many"], /Cannot use --bytes "many"/],
    [["--learning-rate", "1"], /--learning-rate.*see --help/],
    [["--size"], /--size.*see --help/],
  ] as [string[], RegExp][]
) {
  Deno.test(`refused: ${args.join(" ")}`, () => {
    assert.throws(() => readOptions(args), message);
  });
}

Deno.test("a batch smaller than the micro-batches is good enough without a pipeline", () => {
  assert.equal(readOptions(["--batch", "4", "--strategies", "single"]).batch, 4);
});

Deno.test("convolutions are of a micro-batch: 4 samples, or what --batch says", () => {
  assert.equal(readOptions(["convolutions"]).batch, 4);
  assert.equal(readOptions(["convolutions", "--batch", "2"]).batch, 2);
});

Deno.test("sums are measured between as many workers and of as many bytes as are named, ascending", () => {
  const { command, workers, bytes } = readOptions(["allreduce", "--workers", "4,2,4", "--bytes", "1e8, 4"]);
  assert.deepEqual([command, workers, bytes], ["allreduce", [2, 4], [4, 1e8]]);
});

Deno.test("the help text names every option and value", () => {
  for (
    const name of [
      ...BENCH_STRATEGIES,
      ...SCHEDULES,
      "--json",
      "--torch",
      "--output",
      ...COMMANDS,
      "--workers",
      "--bytes",
    ]
  ) {
    assert.ok(HELP.includes(name), name);
  }
});

Deno.test("without a command both comparisons run, each with its own defaults", () => {
  const runs = readRuns(["--steps", "2", "--enumerate", "--full"]);
  assert.deepEqual(
    runs.map(({ command, size, batch, steps, data }) => [command, size, batch, steps, data]),
    [["resnet50", 128, 120, 2, "synthetic"], ["unet", 64, 16, 2, "digits"]],
  );
  assert.equal(runs[1]!.enumerate, true);
});

Deno.test("U-Net's options are read, and its schedule is one", () => {
  const [run] = readRuns(["unet", "--enumerate", "--split-size=4", "--partition=decoder3", "--epochs=2"]);
  const { enumerate, splitSize, partition, schedules, epochs } = run!;
  assert.deepEqual([enumerate, splitSize, epochs], [true, 4, 2]);
  assert.deepEqual([partition, schedules], [["decoder3"], ["zero-bubble"]]);
});

for (
  const [args, message] of [
    [["--partition", "decoder3"], /Cannot use --partition decoder3 for resnet50 and unet at once: name one/],
    [["--data", "pictures"], /Cannot use --data pictures for resnet50 and unet at once/],
    [["resnet50", "--enumerate"], /Cannot use --enumerate with resnet50: it is an option of unet/],
    [["resnet50", "--epochs", "2"], /Cannot use --epochs with resnet50/],
    [["convolutions", "--split-size", "2"], /Cannot use --split-size with convolutions/],
    [["unet", "--full"], /Cannot use --full with unet: it is an option of resnet50/],
    [["unet", "--micro-batches", "7"], /Cannot use --micro-batches with unet: it is an option of resnet50/],
    [["allreduce", "--size=3"], /--size with allreduce: it is an option of resnet50, unet, convolutions/],
    [["allreduce", "--batch", "2"], /Cannot use --batch with allreduce/],
    [["allreduce", "--schedule", "gpipe"], /Cannot use --schedule with allreduce/],
    [["convolutions", "--output", "x"], /Cannot use --output with convolutions/],
    [["--workers", "2"], /Cannot use --workers with resnet50 and unet: it is an option of allreduce/],
    [
      ["unet", "--enumerate", "--strategies", "single"],
      /Cannot use --enumerate with --strategies single: it is an option of pipeline/,
    ],
    [
      ["unet", "--partition=decoder3", "--strategies=single,dataParallel"],
      /Cannot use --partition with --strat/,
    ],
    [["unet", "--epochs", "1", "--steps", "2"], /Cannot use both --epochs and --steps/],
    [["unet", "--schedule", "gpipe,1f1b"], /Cannot use --schedule gpipe,1f1b with unet: expected one/],
    [
      ["unet", "--split-size", "9", "--batch", "2"],
      /Cannot cut a batch of 2 into micro-batches of 9: expected --split-size <= --batch/,
    ],
    [
      ["unet", "--data", "mnist"],
      /Cannot use --data mnist with unet: expected digits, synthetic or a folder/,
    ],
    [["resnet50", "--data", "digits"], /Cannot use --data digits with resnet50: expected mnist/],
    [["unet", "--split-size", "0"], /Cannot use --split-size 0: expected an integer >= 1/],
    [["unet", "--size", "60"], /Cannot use --size 60 for a U-Net: expected a multiple of 32/],
  ] as [string[], RegExp][]
) {
  Deno.test(`refused: bench ${args.join(" ")}`, () => assert.throws(() => readRuns(args), message));
}

Deno.test("what either comparison takes is taken without a command", () => {
  const args = [
    "--size=32",
    "--batch=8",
    "--micro-batches=4",
    "--steps=1",
    "--output=x",
    "--schedule=1f1b,gpipe",
  ];
  const [resnet50, unet] = readRuns(args);
  assert.deepEqual([resnet50!.microBatches, resnet50!.steps, unet!.batch], [4, 1, 8]);
});
