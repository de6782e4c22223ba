/** Tests of the U-Net: its shapes, names and blocks, and its outputs against PyTorch's. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { modelGraph } from "../../stages/graph.ts";
import { type Layer, silenceBanner } from "../../stages/tfjs.ts";
import { unet, UNET_BLOCKS, type UNetOptions } from "../../stages/unet.ts";
import { classNames, count, fillLayers, onWasm, saved as savedModel, uniform } from "./built_models.ts";

await tf.setBackend("cpu");
silenceBanner();

const CLASSES = 2;
const IMAGES = [2, 64, 96, 3];

/**
 * Logits of PyTorch's model in double precision for the weights and images that `uniform` gives, each 1999th,
 * and the means of all and of their squares: printed by unet_torch.py beside this file under torch 2.15.0. The
 * tolerance is relative to the largest; PyTorch in single precision is 1.0e-5 and 2.1e-5 away.
 */
const TORCH = {
  inference: {
    logits: [
      ...[15.66651, -285.882, -199.0219, -24.48936, 69.30884, -21.54756, 80.66115, -57.91658, 158.8463],
      ...[-10.55249, 96.07189, -285.635, 193.2897],
    ],
    means: [-3.336046, 38766.35],
  },
  training: {
    logits: [
      ...[0.5857364, 1.8384, 2.563386, 0.5513353, 0.4164977, -0.3692516, 1.394252, -0.02509322, 0.06119783],
      ...[-0.6336156, -0.07927347, 1.702284, 1.803881],
    ],
    means: [0.9065528, 1.589653],
  },
};
const STRIDE = 1999;
const TOLERANCE = 2e-4;

/** ResNet34's groups: blocks, channels. */
const ENCODER = [[1, 3, 64], [2, 4, 128], [3, 6, 256], [4, 3, 512]] as const;

function withModel<T>(options: UNetOptions, use: (model: tf.LayersModel) => T): T {
  const model = unet(options);
  try {
    return use(model);
  } finally {
    model.dispose();
  }
}

/** Layers with weights in the order of unet_torch.py's modules. */
function torchOrder(): string[] {
  const names = ["stem_conv", "stem_bn"];
  const pairs = (prefix: string) => [1, 2].flatMap((i) => [`${prefix}_conv${i}`, `${prefix}_bn${i}`]);
  for (const [group, blocks] of ENCODER) {
    for (let i = 1; i <= blocks; i++) {
      const prefix = `encoder${group}_block${i}`;
      if (group > 1 && i === 1) names.push(`${prefix}_shortcut_conv`, `${prefix}_shortcut_bn`);
      names.push(...pairs(prefix));
    }
  }
  for (const i of [4, 3, 2, 1, 0]) names.push(...pairs(`decoder${i}`));
  return [...names, "head"];
}

function matches(training: boolean, { logits, means }: typeof TORCH.inference): void {
  const actual = withModel({ inputShape: [64, 96, 3], classes: CLASSES }, (model) => {
    fillLayers(model, torchOrder());
    return tf.tidy(() => {
      const y = model.apply(uniform(0, IMAGES, 0, 1), { training }) as tf.Tensor;
      assert.deepEqual(y.shape, [2, 64, 96, CLASSES]);
      return y.dataSync() as Float32Array;
    });
  });
  const largest = Math.max(...logits.map(Math.abs));
  const error = Math.max(...logits.map((y, i) => Math.abs(actual[i * STRIDE]! - y))) / largest;
  assert.ok(error < TOLERANCE, `relative error ${error}`);
  const mean = (f: (x: number) => number) => actual.reduce((sum, x) => sum + f(x), 0) / actual.length;
  const rms = Math.sqrt(means[1]!);
  assert.ok(Math.abs(mean((x) => x) - means[0]!) < TOLERANCE * rms);
  assert.ok(Math.abs(mean((x) => x * x) / means[1]! - 1) < TOLERANCE);
}

Deno.test("unet() gives the outputs of PyTorch's model in inference", () =>
  onWasm(() => matches(false, TORCH.inference)));

Deno.test("unet() gives the outputs of PyTorch's model in training", () =>
  onWasm(() => matches(true, TORCH.training)));

Deno.test("unet() has as many weights as PyTorch's model", () => {
  let convolutions = 7 * 7 * 3 * 64;
  let channels = 64; // of all batch normalizations
  let input = 64;
  for (const [, blocks, out] of ENCODER) {
    convolutions += 9 * out * (input + (2 * blocks - 1) * out);
    channels += 2 * blocks * out;
    if (input !== out) {
      convolutions += input * out;
      channels += out;
    }
    input = out;
  }
  for (const [skip, out] of [[256, 256], [128, 128], [64, 64], [64, 32], [0, 16]] as const) {
    convolutions += 9 * out * (input + skip + out);
    channels += 2 * out;
    input = out;
  }
  const body = convolutions + 2 * channels;
  for (const [classes, total] of [[1, 24_436_369], [2, 24_436_514]] as const) {
    withModel({ inputShape: [64, 64, 3], classes }, (model) => {
      assert.equal(count(model.trainableWeights), total); // sum(p.numel() for p in model.parameters())
      assert.equal(body + (9 * 16 + 1) * classes, total);
      assert.equal(count(model.nonTrainableWeights), 2 * channels);
    });
  }
});

Deno.test("unet() halves height and width five times and doubles them again", () => {
  withModel({ inputShape: [64, 96, 4], classes: 3, name: "mine" }, (model) => {
    const ends = [
      ["stem_relu", 32, 48, 64],
      ["stem_pool", 16, 24, 64],
      ["encoder1_block3_relu2", 16, 24, 64],
      ["encoder2_block4_relu2", 8, 12, 128],
      ["encoder3_block6_relu2", 4, 6, 256],
      ["encoder4_block3_relu2", 2, 3, 512],
      ["decoder4_concat", 4, 6, 512 + 256],
      ["decoder4_relu2", 4, 6, 256],
      ["decoder3_concat", 8, 12, 256 + 128],
      ["decoder3_relu2", 8, 12, 128],
      ["decoder2_concat", 16, 24, 128 + 64],
      ["decoder2_relu2", 16, 24, 64],
      ["decoder1_concat", 32, 48, 64 + 64],
      ["decoder1_relu2", 32, 48, 32],
      ["decoder0_up", 64, 96, 32],
      ["decoder0_relu2", 64, 96, 16],
      ["head", 64, 96, 3],
    ] as const;
    for (const [name, ...shape] of ends) {
      assert.deepEqual(model.getLayer(name).outputShape, [null, ...shape], name);
    }
    assert.equal(model.name, "mine");
    assert.deepEqual(model.outputs[0]!.shape, [null, 64, 96, 3]);
  });
});

Deno.test("unet() joins what the encoder gives behind what is up-sampled", () => {
  withModel({ inputShape: [32, 32, 3] }, (model) => {
    const skips = { 4: "encoder3_block6_relu2", 3: "encoder2_block4_relu2", 2: "encoder1_block3_relu2" };
    for (const [i, skip] of Object.entries({ ...skips, 1: "stem_relu" })) {
      const { inboundNodes } = model.getLayer(`decoder${i}_concat`) as unknown as Layer;
      assert.deepEqual(inboundNodes[0]!.inboundLayers.map(({ name }) => name), [`decoder${i}_up`, skip]);
    }
  });
});

Deno.test("unet() has its layers block by block, named after their block", () => {
  withModel({ inputShape: [32, 32, 3] }, (model) => {
    const blocks = modelGraph(model).layers.map(({ name }) => {
      const of = UNET_BLOCKS.filter((block) => name === block || name.startsWith(`${block}_`));
      assert.equal(of.length, 1, name);
      return of[0];
    });
    assert.deepEqual(blocks.filter((block, i) => block !== blocks[i - 1]), [...UNET_BLOCKS]);
  });
});

Deno.test("unet() has weights that follow from the seed and differ between layers", () => {
  const draw = (seed?: number) =>
    withModel(
      { inputShape: [32, 32, 3], classes: 5, seed },
      (model) => model.trainableWeights.map((weight) => [...weight.read().dataSync().subarray(0, 4)]),
    );
  const first = draw(1);
  assert.deepEqual(draw(1), first);
  const random = first.filter((values) => !values.every((x) => x === 0 || x === 1));
  assert.equal(random.length, 48, "kernels of 36 + 10 convolutions, kernel and bias of the head");
  assert.equal(new Set(random.map(([x]) => Math.abs(x!) / Math.abs(random[0]![0]!))).size, 48);
  const other = draw(2);
  assert.ok(random.every((values) => !other.some(([x]) => x === values[0])));
  assert.notDeepEqual(draw(), draw());
});

Deno.test("unet() starts the head as PyTorch's Conv2d and other convolutions as torchvision's", () => {
  withModel({ inputShape: [32, 32, 3], classes: 64, seed: 1 }, (model) => {
    const values = (name: string, weight = 0) => {
      const { weights } = model.getLayer(name) as unknown as Layer;
      return weights[weight]!.read().dataSync() as Float32Array;
    };
    const near = (numbers: Float32Array, expected: number) => {
      const actual = Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length);
      assert.ok(Math.abs(actual / expected - 1) < 0.05, `expected ${expected}, got ${actual}`);
    };
    near(values("stem_conv"), Math.sqrt(2 / (7 * 7 * 64)));
    near(values("decoder3_conv1"), Math.sqrt(2 / (3 * 3 * 128)));
    near(values("head"), 1 / Math.sqrt(3 * 9 * 16));
    assert.ok(values("head").every((x) => Math.abs(x) <= 1 / 12));
    assert.ok(values("head", 1).every((x) => Math.abs(x) <= 1 / 12));
  });
});

Deno.test("unet() saves as layers of TensorFlow.js alone, and loads with the same outputs", () =>
  onWasm(async () => {
    const model = unet({ inputShape: [32, 32, 3], seed: 1 });
    const saved = await savedModel(model);
    const own = [...classNames(saved.modelTopology)].sort();
    assert.deepEqual(own, [
      ...["Activation", "Add", "BatchNormalization", "Concatenate", "Conv2D", "InputLayer", "MaxPooling2D"],
      ...["Model", "Ones", "RandomUniform", "UpSampling2D", "VarianceScaling", "ZeroPadding2D", "Zeros"],
    ]);
    const copy = await tf.loadLayersModel(tf.io.fromMemory(saved));
    const outputs = [model, copy].map((m) =>
      tf.tidy(() => [...(m.apply(uniform(0, [1, 32, 32, 3], 0, 1)) as tf.Tensor).dataSync()])
    );
    assert.equal(outputs[0]!.length, 32 * 32);
    assert.deepEqual(outputs[0], outputs[1]);
    model.dispose();
    copy.dispose();
  }));

Deno.test("unet() leaves nothing behind when it is disposed", () => {
  const before = tf.memory().numTensors;
  withModel({ inputShape: [32, 32, 3] }, () => {});
  assert.equal(tf.memory().numTensors, before);
});

Deno.test("unet() refuses options that it cannot build from", () => {
  const before = tf.memory().numTensors;
  const refuses = (options: Record<string, unknown>, error: typeof RangeError, message: RegExp) =>
    assert.throws(
      () => unet({ inputShape: [64, 64, 3], ...options } as UNetOptions),
      (thrown: Error) => {
        assert.equal(thrown.constructor, error);
        assert.match(thrown.message, message);
        return true;
      },
    );
  refuses({ inputShape: undefined }, TypeError, /U-Net.*"inputShape" to be \[height, width, channels\]/);
  refuses({ inputShape: [64, "64", 3] }, TypeError, /the width of "inputShape" to be a number: got "64"/);
  refuses({ inputShape: [64, 64, 0] }, RangeError, /the channels of "inputShape" .* from 1: got 0/);
  refuses(
    { inputShape: [100, 64, 3] },
    RangeError,
    /the height of "inputShape" to be a multiple of 32.*got 100; resize or pad the images to 96 or 128$/,
  );
  refuses(
    { inputShape: [64, 28, 3] },
    RangeError,
    /the width of "inputShape" to be a multiple of 32.*got 28; resize or pad the images to 32$/,
  );
  refuses({ classes: 0 }, RangeError, /"classes" to be an integer from 1: got 0; give the number of masks/);
  refuses({ classes: "2" }, TypeError, /"classes" to be a number: got "2"/);
  refuses({ name: "" }, TypeError, /expected "name" to be a string of a character or more: got ""/);
  refuses({ seed: -1 }, RangeError, /expected "seed" to be an integer from 0 to 9007199254740991: got -1/);
  refuses(
    { activation: "sigmoid" },
    TypeError,
    /expected some of inputShape,.*got "activation"; leave it out/,
  );
  assert.equal(tf.memory().numTensors, before);
});
