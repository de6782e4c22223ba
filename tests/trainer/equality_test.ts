/** Every strategy computes the gradients of a single device: parameter by parameter. */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { distribute } from "../../runtime/distribute.ts";
import type { DistributeOptions } from "../../runtime/options.ts";
import { SCHEDULES } from "../../runtime/schedules/schedules.ts";
import { needsTensorflow } from "./engine.ts";
import { classes, images, residualNet, weightsOf, worstDifference } from "./models.ts";

const BATCH = 8;
const PARTITIONS: Record<number, string[]> = {
  1: [],
  2: ["block_b"], // inside the residual block: two tensors cross
  3: ["block_b", "pool"],
};
const DEVICES = ["cpu:0", "cpu:1", "cpu:0"];

interface Trained {
  /** Gradients of the first step: with plain SGD and a learning rate of 1, weights before minus after. */
  readonly gradients: Float32Array[];
  readonly losses: number[];
  readonly weights: Float32Array[];
}

/** Trains some steps, the first with a learning rate of 1. */
async function train(
  model: tf.LayersModel,
  options: DistributeOptions,
  steps = 3,
): Promise<Trained> {
  const optimizer = tf.train.sgd(1);
  const trainer = await distribute(model, options);
  trainer.compile({ optimizer, loss: "categoricalCrossentropy" });
  const { x, y } = images(BATCH);
  try {
    const before = weightsOf(model);
    const losses = [await trainer.trainOnBatch(x, y) as number];
    await trainer.syncWeights();
    const after = weightsOf(model);
    optimizer.setLearningRate(0.1);
    for (let i = 1; i < steps; i++) losses.push(await trainer.trainOnBatch(x, y) as number);
    await trainer.syncWeights();
    const gradients = before.map((values, i) => values.map((value, j) => value - after[i]![j]!));
    return { gradients, losses, weights: weightsOf(model) };
  } finally {
    await trainer.dispose();
    tf.dispose([x, y]);
  }
}

function assertEqual(got: Trained, expected: Trained, tolerance: number): void {
  got.losses.forEach((loss, i) => {
    assert.ok(
      Math.abs(loss - expected.losses[i]!) <= tolerance * expected.losses[i]!,
      `loss ${loss} of step ${i}`,
    );
  });
  const gradients = worstDifference(got.gradients, expected.gradients);
  assert.ok(gradients <= tolerance, `gradients differ by ${gradients}`);
  const weights = worstDifference(got.weights, expected.weights);
  assert.ok(weights <= tolerance, `weights differ by ${weights}`);
}

let reference: Promise<Trained> | undefined;
/** Plain training on one device, op by op. */
function single(): Promise<Trained> {
  return reference ??= train(residualNet({ penalty: true }), {
    strategy: "single",
    devices: ["cpu:0"],
    engine: "tensorflow",
    capture: false,
  });
}

Deno.test("single, captured, equals single run op by op", needsTensorflow, async () => {
  const captured = await train(residualNet({ penalty: true }), {
    strategy: "single",
    devices: ["cpu:0"],
    engine: "tensorflow",
  });
  assertEqual(captured, await single(), 1e-5);
});

for (const stages of [1, 2, 3]) {
  for (const schedule of SCHEDULES) {
    for (const microBatches of [1, 2, 3, 8]) { // 3: sizes 3, 3, 2
      if (stages === 1 && schedule !== "1f1b") continue; // one stage has one schedule
      Deno.test(
        `pipeline of ${stages} stages, ${microBatches} micro-batches, ${schedule} equals single`,
        needsTensorflow,
        async () => {
          const trained = await train(residualNet({ penalty: true }), {
            strategy: "pipeline",
            devices: DEVICES.slice(0, stages),
            partition: PARTITIONS[stages],
            engine: "tensorflow",
            schedule,
            microBatches,
            weightBatch: 1,
          });
          assertEqual(trained, await single(), 1e-5);
        },
      );
    }
  }
}

Deno.test("pipeline run op by op equals single", needsTensorflow, async () => {
  for (const schedule of ["1f1b", "zero-bubble"] as const) {
    const trained = await train(residualNet({ penalty: true }), {
      strategy: "pipeline",
      devices: DEVICES,
      partition: PARTITIONS[3],
      engine: "tensorflow",
      schedule,
      microBatches: 3,
      capture: false,
    });
    assertEqual(trained, await single(), 1e-5);
  }
});

Deno.test("W of several micro-batches in one call equals single after a step", needsTensorflow, async () => {
  for (const weightBatch of [2, 4]) {
    const trained = await train(residualNet({ penalty: true }), {
      strategy: "pipeline",
      devices: DEVICES.slice(0, 2),
      partition: PARTITIONS[2],
      engine: "tensorflow",
      schedule: "zero-bubble",
      microBatches: 8,
      weightBatch,
    }, 1);
    const expected = await single();
    const difference = worstDifference(trained.gradients, expected.gradients);
    assert.ok(difference <= 1e-5, `W of ${weightBatch} micro-batches: gradients differ by ${difference}`);
  }
});

Deno.test(
  "with BatchNorm, model parallel equals single, running statistics included",
  needsTensorflow,
  async () => {
    const options = { engine: "tensorflow" } as const;
    const expected = await train(residualNet({ norm: true }), {
      ...options,
      strategy: "single",
      devices: ["cpu:0"],
      capture: false,
    });
    for (const capture of [true, false]) {
      const trained = await train(residualNet({ norm: true }), {
        ...options,
        strategy: "modelParallel",
        devices: DEVICES,
        partition: PARTITIONS[3],
        capture,
      });
      assertEqual(trained, expected, 2e-5);
    }
  },
);

Deno.test(
  "after 2 steps every schedule with W per micro-batch has the very weights of accumulated single",
  needsTensorflow,
  async () => {
    const model = () => residualNet({ norm: true, penalty: true });
    const expected = await train(model(), {
      strategy: "single",
      devices: ["cpu:0"],
      engine: "tensorflow",
      microBatches: 4,
    }, 2);
    for (const schedule of SCHEDULES) {
      const { weights } = await train(model(), {
        strategy: "pipeline",
        devices: DEVICES.slice(0, 2),
        partition: PARTITIONS[2],
        engine: "tensorflow",
        schedule,
        microBatches: 4,
        weightBatch: 1,
      }, 2);
      assert.deepEqual(weights, expected.weights, schedule);
    }
  },
);

Deno.test(
  "dropout draws the same masks whatever the partition and the micro-batches",
  needsTensorflow,
  async () => {
    const model = () => residualNet({ dropout: 0.5 });
    const base = { engine: "tensorflow", seed: 3 } as const;
    const expected = await train(model(), { ...base, strategy: "single", devices: ["cpu:0"] });
    const other = await train(model(), { ...base, seed: 4, strategy: "single", devices: ["cpu:0"] });
    assert.ok(worstDifference(other.gradients, expected.gradients) > 1e-3, "another seed draws other masks");
    for (const capture of [true, false]) {
      const trained = await train(model(), {
        ...base,
        strategy: "pipeline",
        devices: DEVICES.slice(0, 2),
        partition: ["join"],
        microBatches: 3,
        capture,
      });
      assertEqual(trained, expected, 1e-5);
    }
  },
);

Deno.test(
  "dropout without a name draws the same masks in every model of a process",
  needsTensorflow,
  async () => {
    const once = async () => {
      const layers = [
        tf.layers.dense({ units: 6, inputShape: [4], kernelInitializer: "ones" }),
        tf.layers.dropout({ rate: 0.5 }),
        tf.layers.dense({ units: 3, kernelInitializer: "ones" }),
      ];
      const own = tf.sequential({ layers });
      await using trainer = await distribute(own, {
        strategy: "single",
        devices: ["cpu:0"],
        engine: "tensorflow",
      });
      trainer.compile({ optimizer: "sgd", loss: "meanSquaredError" });
      await trainer.fit(tf.ones([6, 4]), classes(6), { batchSize: 6, epochs: 2 });
      return [layers[1]!.name, weightsOf(own)] as const;
    };
    const [[first, a], [second, b]] = [await once(), await once()];
    assert.notEqual(first, second);
    assert.deepEqual(a, b);
  },
);
