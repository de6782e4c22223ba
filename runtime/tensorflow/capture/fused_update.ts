/** TensorFlow's own update ops, which work in place. @module */
import { type OptimizerSpec, updateRule, type UpdateScalars } from "../../../stages/optimizers.ts";
import { ATTR_BOOL, typeAttr } from "../binding/attributes.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
import type { GraphRecorder } from "../binding/graph_recorder.ts";
import type { GraphTensor } from "../binding/graph_tensor.ts";
import { assignAttributes, type Variable } from "../binding/variable.ts";

/** One weight's update, to be recorded. */
export interface FusedUpdate {
  readonly spec: OptimizerSpec;
  readonly weight: Variable;
  readonly slots: readonly Variable[];
  readonly gradient: GraphTensor;
  /** The input for a scalar of the update, by name. */
  scalar(name: string): GraphTensor;
  /** A constant. */
  number(value: number): GraphTensor;
}

/** Optimizers that TensorFlow updates in place with the arithmetic of TensorFlow.js. */
export function fused({ name, centered }: OptimizerSpec): boolean {
  return ["sgd", "momentum", "adam", "adamw"].includes(name) || name === "rmsprop" && !centered;
}

/** The scalars of one update. */
export function updateScalars(spec: OptimizerSpec, step: UpdateScalars): Record<string, number> {
  if (!fused(spec) || spec.name !== "adam" && spec.name !== "adamw") return updateRule(spec).scalars(step);
  const beta1Power = spec.beta1 ** (step.iteration + 1);
  const beta2Power = spec.beta2 ** (step.iteration + 1);
  return {
    learningRate: step.learningRate,
    beta1Power,
    beta2Power,
    // TensorFlow adds epsilon to the root of the uncorrected second moment, TensorFlow.js to the corrected one.
    epsilon: spec.epsilon * Math.sqrt(1 - beta2Power),
    kept: 1 - step.learningRate * spec.weightDecay,
  };
}

/** Records the op. */
export function applyFused(
  graph: GraphRecorder,
  { spec, weight, slots, gradient, scalar, number }: FusedUpdate,
): void {
  const T = [typeAttr("T", TF_FLOAT), { name: "use_locking", type: ATTR_BOOL, value: false }];
  if (spec.name === "sgd" && spec.momentum === 0) {
    graph.write("ResourceApplyGradientDescent", T, weight, [scalar("learningRate"), gradient]);
    return;
  }
  if (spec.name === "rmsprop") {
    const values = [
      scalar("learningRate"),
      number(spec.decay),
      number(spec.momentum),
      number(spec.epsilon),
      gradient,
    ];
    graph.write("ResourceApplyRMSProp", T, weight, values, slots);
    return;
  }
  if (spec.name === "adam" || spec.name === "adamw") {
    if (spec.name === "adamw" && spec.weightDecay > 0) {
      const kept = graph.op("Mul", [typeAttr("T", TF_FLOAT)], [graph.read(weight), scalar("kept")], 1);
      graph.write("AssignVariableOp", assignAttributes(weight), weight, kept);
    }
    const scalars = ["beta1Power", "beta2Power", "learningRate"].map(scalar);
    const values = [...scalars, number(spec.beta1), number(spec.beta2), scalar("epsilon"), gradient];
    graph.write("ResourceApplyAdam", T, weight, values, slots);
    return;
  }
  const nesterov = { name: "use_nesterov", type: ATTR_BOOL, value: spec.nesterov };
  const values = [scalar("learningRate"), gradient, number(spec.momentum)];
  graph.write("ResourceApplyMomentum", [...T, nesterov], weight, values, slots);
}
