/** The engine wasm's updates in one pass, against the rules that they stand for. @module */
import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { startBackend } from "../../runtime/wasm/start_backend.ts";
import { wasmUpdateRule } from "../../runtime/wasm/update_rule.ts";
import { type OptimizerConfig, optimizerSpec, updateRule } from "../../stages/optimizers.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { assertClose, tensor } from "./wasm_reference.ts";

silenceBanner();
const started = await startBackend();

const OPTIMIZERS: OptimizerConfig[] = [
  { name: "sgd", learningRate: 0.3 },
  { name: "sgd", weightDecay: 0.1 },
  { name: "momentum", momentum: 0.8 },
  { name: "momentum", nesterov: true, weightDecay: 0.05 },
  { name: "adam" },
  { name: "adam", learningRate: 0.1, beta1: 0.5, weightDecay: 0.2 },
  { name: "adamw", learningRate: 0.1, weightDecay: 0.3 },
  { name: "rmsprop" },
];

for (const config of OPTIMIZERS) {
  Deno.test(`wasm updates as the rule of ${JSON.stringify(config)} says, for any length`, () => {
    const spec = optimizerSpec(config);
    const [own, reference] = [wasmUpdateRule(started, spec), updateRule(spec)];
    assert.deepEqual(own.slots, reference.slots);
    for (const size of [1, 2, 3, 4, 23]) {
      tf.tidy(() => {
        const start = () => ({
          weight: tensor([size]),
          slots: own.slots.map(({ initial }) => tf.fill([size], initial)),
        });
        let [a, b] = [start(), start()];
        for (let iteration = 0; iteration < 3; iteration++) {
          const gradient = tensor([size], iteration + 1);
          const step = { learningRate: spec.learningRate, iteration };
          const scalars = Object.fromEntries(
            Object.entries(own.scalars(step)).map(([name, value]) => [name, tf.scalar(value)]),
          );
          const before = a.weight.dataSync().slice();
          const next = own.apply(a.weight, gradient, a.slots, scalars);
          assert.deepEqual(a.weight.dataSync(), before, "the weight that was given has changed");
          [a, b] = [next, reference.apply(b.weight, gradient, b.slots, scalars)];
          assertClose(a.weight.dataSync(), b.weight.dataSync(), 1e-6, `weight, size ${size}`);
          a.slots.forEach((slot, i) =>
            assertClose(slot.dataSync(), b.slots[i]!.dataSync(), 1e-6, `slot ${i}`)
          );
        }
      });
    }
  });
}
