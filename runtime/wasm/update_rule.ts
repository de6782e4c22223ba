/** Optimizers on the engine "wasm": the common ones in one pass over memory, the others by ops. @module */
import type { tf } from "../../deps.ts";
import { type OptimizerSpec, type UpdateRule, updateRule } from "../../stages/optimizers.ts";
import { engine } from "../../stages/tfjs.ts";
import { addressOf } from "./kernels/simd/address.ts";
import type { StartedBackend } from "./start_backend.ts";

/** The update rule of an optimizer. */
export function wasmUpdateRule(
  started: Pick<StartedBackend, "backend" | "kernels">,
  spec: OptimizerSpec,
): UpdateRule {
  const rule = updateRule(spec);
  const { backend, kernels } = started;
  if (!kernels) return rule;
  const { momentumUpdate, adamUpdate } = kernels.exports;
  const at = (t: tf.TensorInfo | undefined) => t ? addressOf(backend, t) : 0;
  const like = (t: tf.Tensor) => backend.makeOutput(t.shape, "float32");
  const number = (scalar: tf.Tensor | undefined) => backend.typedArrayFromHeap(scalar!)[0]!;
  const answer = (weight: tf.TensorInfo, slots: tf.TensorInfo[]) => ({
    weight: engine().makeTensorFromTensorInfo(weight),
    slots: slots.map((slot) => engine().makeTensorFromTensorInfo(slot)),
  });
  switch (spec.name) {
    case "sgd":
    case "momentum":
      return {
        ...rule,
        apply(weight, gradient, [velocity], { learningRate }) {
          const [newWeight, newVelocity] = [like(weight), velocity && like(velocity)];
          momentumUpdate(
            at(weight),
            at(gradient),
            at(velocity),
            weight.size,
            number(learningRate),
            spec.momentum,
            spec.nesterov ? 1 : 0,
            spec.weightDecay,
            at(newWeight),
            at(newVelocity),
          );
          return answer(newWeight, newVelocity ? [newVelocity] : []);
        },
      };
    case "adam":
    case "adamw":
      return {
        ...rule,
        apply(weight, gradient, [m, v], { learningRate, correction1, correction2 }) {
          const [newWeight, newM, newV] = [like(weight), like(m!), like(v!)];
          const rate = number(learningRate);
          const apart = spec.name === "adamw";
          adamUpdate(
            at(weight),
            at(gradient),
            at(m),
            at(v),
            weight.size,
            rate,
            spec.beta1,
            1 - spec.beta1,
            spec.beta2,
            1 - spec.beta2,
            number(correction1),
            number(correction2),
            spec.epsilon,
            apart ? 0 : spec.weightDecay,
            apart ? 1 - rate * spec.weightDecay : 1,
            at(newWeight),
            at(newM),
            at(newV),
          );
          return answer(newWeight, [newM, newV]);
        },
      };
    default:
      return rule;
  }
}
