/** Tests of ResNet50: its shapes, names, what it is saved as, and its outputs against PyTorch's. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { resnet50, type ResNet50Options } from "../../stages/resnet50.ts";
import { type Layer, silenceBanner } from "../../stages/tfjs.ts";
import { classNames, count, fillLayers, onWasm, saved as savedModel, uniform } from "./built_models.ts";

await tf.setBackend("cpu");
silenceBanner();

const CLASSES = 5;
const IMAGES = [2, 64, 48, 3];

/**
 * Outputs of PyTorch's model in double precision, two samples of five classes, for the weights and images
 * that `uniform` gives: printed by resnet50_torch.py beside this file under torch 2.15.0. The tolerance is
 * relative to the largest; PyTorch in single precision is 2.0e-6, 1.1e-4 and 3.6e-6 away: in training, a
 * channel of the last blocks has only eight values to normalize.
 */
const TORCH = {
  inference: {
    outputs: [
      [-82.33646, 106.8922, -288.845, -648.1937, 122.4091],
      [-110.7486, 134.3317, -280.0133, -589.3825, 116.1507],
    ],
    tolerance: 2e-5,
  },
  training: {
    outputs: [
      [0.3965569, 0.5476161, -0.2261971, -0.4157843, -0.1336567],
      [-0.3056182, 0.9042356, -0.6701483, 0.07937025, -0.05009219],
    ],
    tolerance: 4e-4,
  },
  strideOn1x1: {
    outputs: [
      [-94.12486, 144.3627, -174.8691, -474.578, 9.439796],
      [-105.4589, 152.5608, -181.7286, -494.4401, -1.859174],
    ],
    tolerance: 2e-5,
  },
};

interface Expected {
  readonly outputs: number[][];
  readonly tolerance: number;
}

/** The groups conv2_x to conv5_x: blocks, and channels within them. */
const GROUPS = [[2, 3, 64], [3, 4, 128], [4, 6, 256], [5, 3, 512]] as const;

function withModel<T>(options: ResNet50Options, use: (model: tf.LayersModel) => T): T {
  const model = resnet50(options);
  try {
    return use(model);
  } finally {
    model.dispose();
  }
}

function layer(model: tf.LayersModel, name: string): Layer {
  return model.getLayer(name) as unknown as Layer;
}

/** Sets the weights that resnet50_torch.py sets, in its order: a block's shortcut comes first. */
function fill(model: tf.LayersModel): void {
  const prefixes = ["conv1"];
  for (const [group, blocks] of GROUPS) {
    for (let i = 1; i <= blocks; i++) {
      for (const part of i === 1 ? [0, 1, 2, 3] : [1, 2, 3]) prefixes.push(`conv${group}_block${i}_${part}`);
    }
  }
  fillLayers(model, [
    ...prefixes.flatMap((prefix) => [`${prefix}_conv`, `${prefix}_bn`]),
    "predictions",
  ]);
}

/** Runs a filled model and compares it with PyTorch's. */
function matches(
  options: Partial<ResNet50Options>,
  training: boolean,
  { outputs, tolerance }: Expected,
): void {
  const actual = withModel(
    { inputShape: [64, 48, 3], classes: CLASSES, activation: "linear", ...options },
    (model) => {
      fill(model);
      return tf.tidy(
        () => [...(model.apply(uniform(0, IMAGES, 0, 1), { training }) as tf.Tensor).dataSync()],
      );
    },
  );
  const expected = outputs.flat();
  const largest = Math.max(...expected.map(Math.abs));
  const error = Math.max(...expected.map((y, i) => Math.abs(actual[i]! - y))) / largest;
  assert.ok(error < tolerance, `relative error ${error}: expected ${expected}, got ${actual}`);
}

Deno.test("resnet50() gives the outputs of PyTorch's model in inference", () =>
  onWasm(() => matches({}, false, TORCH.inference)));

Deno.test("resnet50() gives the outputs of PyTorch's model in training", () =>
  onWasm(() => matches({}, true, TORCH.training)));

Deno.test("resnet50() gives the outputs of PyTorch's model with the stride on the first 1x1", () =>
  onWasm(() => matches({ strideOn: "1x1" }, false, TORCH.strideOn1x1)));

Deno.test("resnet50() has 25,557,032 trainable weights, whichever convolution has the stride", () => {
  let convolutions = 7 * 7 * 3 * 64;
  let channels = 64; // of all batch normalizations
  let input = 64;
  for (const [, blocks, inner] of GROUPS) {
    convolutions += input * 4 * inner + blocks * (3 * 3 * inner * inner + inner * 4 * inner);
    convolutions += input * inner + (blocks - 1) * 4 * inner * inner;
    channels += 4 * inner + blocks * 6 * inner;
    input = 4 * inner;
  }
  const body = convolutions + 2 * channels;
  assert.equal(body + 2048 * 1000 + 1000, 25_557_032);
  for (const strideOn of ["3x3", "1x1"] as const) {
    withModel({ inputShape: [64, 64, 3], strideOn }, (model) => {
      assert.equal(count(model.trainableWeights), 25_557_032);
      assert.equal(count(model.nonTrainableWeights), 2 * channels);
      assert.equal(model.countParams(), 25_557_032 + 53_120);
    });
  }
  withModel({ inputShape: [64, 64, 3], classes: 10 }, (model) => {
    assert.equal(count(model.trainableWeights), body + 2048 * 10 + 10);
    assert.equal(count(model.trainableWeights), 23_528_522);
  });
});

Deno.test("resnet50() halves height and width five times, rounding up", () => {
  const ends = ["conv1_relu", "pool1_pool", "conv2_block3_out", "conv3_block4_out", "conv4_block6_out"];
  ends.push("conv5_block3_out", "avg_pool", "predictions");
  for (
    const [h, w, sizes] of [
      [224, 224, [[112, 112], [56, 56], [56, 56], [28, 28], [14, 14], [7, 7]]],
      [128, 64, [[64, 32], [32, 16], [32, 16], [16, 8], [8, 4], [4, 2]]],
      [33, 1, [[17, 1], [9, 1], [9, 1], [5, 1], [3, 1], [2, 1]]],
    ] as const
  ) {
    // The other sizes are the same whichever convolution has the stride; 33 shows it of odd ones too.
    withModel({ inputShape: [h, w, 4], classes: 7, strideOn: h === 33 ? "1x1" : "3x3" }, (model) => {
      const channels = [64, 64, 256, 512, 1024, 2048];
      assert.deepEqual(
        ends.map((name) => model.getLayer(name).outputShape),
        [...sizes.map((size, i) => [null, ...size, channels[i]]), [null, 2048], [null, 7]],
      );
    });
  }
});

Deno.test("resnet50() has the stride where it is asked for", () => {
  const shapes = (options: Partial<ResNet50Options>) =>
    withModel(
      { inputShape: [64, 64, 3], classes: 2, ...options },
      (model) =>
        ["conv3_block1_1_conv", "conv3_block1_2_conv", "conv3_block2_2_conv"].map((name) => {
          const { outputShape } = model.getLayer(name);
          return outputShape[1];
        }),
    );
  assert.deepEqual(shapes({}), [16, 8, 8]);
  assert.deepEqual(shapes({ strideOn: "1x1" }), [8, 8, 8]);
});

Deno.test("resnet50() names its layers as Keras does, in the order of the forward", () => {
  withModel({ inputShape: [64, 64, 3], classes: 2, name: "mine" }, (model) => {
    const names = model.layers.map(({ name }) => name);
    const projecting = [
      "1_conv",
      "1_bn",
      "1_relu",
      "2_conv",
      "2_bn",
      "2_relu",
      "0_conv",
      "3_conv",
      "0_bn",
      "3_bn",
    ];
    const plain = ["1_conv", "1_bn", "1_relu", "2_conv", "2_bn", "2_relu", "3_conv", "3_bn"];
    const expected = [
      "input",
      "conv1_pad",
      "conv1_conv",
      "conv1_bn",
      "conv1_relu",
      "pool1_pad",
      "pool1_pool",
    ];
    for (const [group, blocks] of GROUPS) {
      for (let i = 1; i <= blocks; i++) {
        const parts = i > 1 ? plain : group === 2 ? projecting : projecting.toSpliced(3, 0, "2_pad");
        expected.push(...[...parts, "add", "out"].map((part) => `conv${group}_block${i}_${part}`));
      }
    }
    assert.deepEqual(names, [...expected, "avg_pool", "predictions"]);
    assert.equal(model.name, "mine");
  });
});

Deno.test("resnet50() gives probabilities by default", () =>
  onWasm(() =>
    withModel({ inputShape: [32, 32, 3], classes: CLASSES, seed: 1 }, (model) => {
      const outputs = tf.tidy(() => (model.apply(uniform(0, [2, 32, 32, 3], 0, 1)) as tf.Tensor).arraySync());
      for (const row of outputs as number[][]) {
        assert.ok(row.every((p) => p >= 0));
        assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-6);
      }
    })
  ));

Deno.test("resnet50() has weights that follow from the seed and differ between layers", () => {
  const draw = (seed?: number) =>
    withModel(
      { inputShape: [32, 32, 3], classes: CLASSES, seed },
      (model) => model.trainableWeights.map((weight) => [...weight.read().dataSync().subarray(0, 4)]),
    );
  const first = draw(1);
  assert.deepEqual(draw(1), first);
  const random = first.filter((values) => !values.every((x) => x === 0 || x === 1));
  assert.equal(random.length, 55, "kernels of 53 convolutions, kernel and bias of the last layer");
  assert.equal(new Set(random.map(([x]) => Math.abs(x!) / Math.abs(random[0]![0]!))).size, 55);
  const other = draw(2);
  assert.ok(random.every((values) => !other.some(([x]) => x === values[0])));
  assert.notDeepEqual(draw(), draw());
});

Deno.test("resnet50() starts convolutions as torchvision and the last layer as PyTorch's Linear", () => {
  withModel({ inputShape: [32, 32, 3], seed: 1 }, (model) => {
    const std = (name: string, weight = 0) => {
      const values = layer(model, name).weights[weight]!.read().dataSync() as Float32Array;
      return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);
    };
    const near = (actual: number, expected: number) =>
      assert.ok(Math.abs(actual / expected - 1) < 0.05, `expected ${expected}, got ${actual}`);
    near(std("conv1_conv"), Math.sqrt(2 / (7 * 7 * 64)));
    near(std("conv4_block2_2_conv"), Math.sqrt(2 / (3 * 3 * 256)));
    near(std("conv5_block1_0_conv"), Math.sqrt(2 / 2048));
    near(std("predictions"), 1 / Math.sqrt(3 * 2048));
    near(std("predictions", 1), 1 / Math.sqrt(3 * 2048));
  });
});

Deno.test("resnet50() saves as layers of TensorFlow.js alone, and loads with the same outputs", () =>
  onWasm(async () => {
    const model = resnet50({ inputShape: [32, 32, 3], classes: CLASSES, seed: 1 });
    const saved = await savedModel(model);
    assert.deepEqual(
      [...classNames(saved.modelTopology)].sort(),
      [
        "Activation",
        "Add",
        "BatchNormalization",
        "Conv2D",
        "Dense",
        "GlobalAveragePooling2D",
        "InputLayer",
        "MaxPooling2D",
        "Model",
        "Ones",
        "RandomUniform",
        "VarianceScaling",
        "ZeroPadding2D",
        "Zeros",
      ],
    );
    const copy = await tf.loadLayersModel(tf.io.fromMemory(saved));
    const outputs = [model, copy].map((m) =>
      tf.tidy(() => [...(m.apply(uniform(0, [1, 32, 32, 3], 0, 1)) as tf.Tensor).dataSync()])
    );
    assert.equal(outputs[0]!.length, CLASSES);
    assert.deepEqual(outputs[0], outputs[1]);
    model.dispose();
    copy.dispose();
  }));

Deno.test("resnet50() normalizes as PyTorch, whose momentum of 0.1 is 0.9 here", () => {
  withModel({ inputShape: [32, 32, 3], classes: 2 }, (model) => {
    const norms = model.layers.filter((l) => l.getClassName() === "BatchNormalization");
    assert.equal(norms.length, 53);
    for (const norm of norms) {
      const { momentum, epsilon } = norm.getConfig();
      assert.deepEqual([momentum, epsilon], [0.9, 1e-5]);
    }
  });
});

Deno.test("resnet50() leaves nothing behind when it is disposed", () => {
  const before = tf.memory().numTensors;
  withModel({ inputShape: [32, 32, 3], classes: 2 }, () => {});
  assert.equal(tf.memory().numTensors, before);
});

Deno.test("resnet50() refuses options that it cannot build from", () => {
  const before = tf.memory().numTensors;
  const refuses = (options: Record<string, unknown>, error: typeof RangeError, message: RegExp) =>
    assert.throws(
      () => resnet50({ inputShape: [64, 64, 3], ...options } as ResNet50Options),
      (thrown: Error) => {
        assert.equal(thrown.constructor, error);
        assert.match(thrown.message, message);
        return true;
      },
    );
  refuses(
    { inputShape: undefined },
    TypeError,
    /"inputShape" to be \[height, width, channels\], without the batch: got undefined; give/,
  );
  refuses({ inputShape: [1, 64, 64, 3] }, TypeError, /without the batch: got \[1,64,64,3\]; give the size/);
  refuses(
    { inputShape: [64, null, 3] },
    TypeError,
    /the width of "inputShape" to be a number: got null; give/,
  );
  refuses(
    { inputShape: [0, 64, 3] },
    RangeError,
    /the height of "inputShape" to be an integer from 1: got 0; give/,
  );
  refuses(
    { inputShape: [64, 64, 1.5] },
    RangeError,
    /the channels of "inputShape" to be an integer from 1: got 1.5/,
  );
  refuses({ classes: 0 }, RangeError, /"classes" to be an integer from 1: got 0; give the number/);
  refuses({ classes: "10" }, TypeError, /"classes" to be a number: got "10"; give the number/);
  refuses(
    { classes: 1 },
    RangeError,
    /"classes" from 2 with activation "softmax".*got 1; take activation "linear"/,
  );
  refuses(
    { strideOn: "first" },
    RangeError,
    /expected "strideOn" "3x3" or "1x1": got "first"; "3x3" is PyTorch's/,
  );
  refuses(
    { activation: "relu" },
    RangeError,
    /expected "activation" "softmax" or "linear": got "relu"; take/,
  );
  refuses({ name: "" }, TypeError, /expected "name" to be a string of a character or more: got ""/);
  refuses(
    { seed: -1 },
    RangeError,
    /expected "seed" to be an integer from 0 to 9007199254740991: got -1; leave/,
  );
  assert.equal(tf.memory().numTensors, before);
});
