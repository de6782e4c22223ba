/** A stage's forward without training, captured: for evaluation and prediction. @module */
import type { tf } from "../../../deps.ts";
import type { TensorSpec } from "../../../ring/dtype.ts";
import type { Workload } from "../../../stages/executor.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import { engine } from "../../../stages/tfjs.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import { CallPlan } from "./call_plan.ts";
import type { FrameLayout } from "./frame.ts";
import { CapturedFunction } from "./captured_function.ts";
import { TF_FLOAT, toTf } from "../binding/dtypes.ts";
import type { InferenceProgram } from "./program.ts";
import { GraphRecorder } from "../binding/graph_recorder.ts";
import type { Argument } from "../binding/graph_tensor.ts";

/** Captures a forward in mode "evaluate" or "predict". @throws {CaptureError} if the layers cannot be captured */
export function captureInference(
  backend: NodeBackend,
  model: StageModel,
  workload: Workload,
): InferenceProgram {
  const { binding } = backend;
  const recorder = new GraphRecorder(binding.context, `stage${model.config.index}_${workload.mode}`);
  const args: Argument[] = [];
  const argument = (label: string, dtype: number, shape: readonly number[]) => {
    const source: Argument = { kind: "argument", label };
    args.push(source);
    return { source, tensor: backend.createOutputTensor(binding.argument(recorder, source, dtype, shape)) };
  };
  const traced = (label: string) => ({ dtype, shape }: TensorSpec, i: number) =>
    argument(`${label} ${i}`, toTf(dtype), shape);
  const e = engine();
  e.startScope("stagger.capture");
  try {
    const inputs = workload.inputs.map(traced("input"));
    const targets = workload.targets.map(traced("target"));
    const share = argument("share", TF_FLOAT, []);
    const [outputs, results] = binding.record(recorder, () => {
      const x = inputs.map(({ tensor }) => tensor);
      const resolve = (t: tf.Tensor) => binding.resolve(idOf(backend, t));
      if (workload.mode === "predict") return [model.predict(x).map(resolve), []];
      const made = model.evaluate(x, targets.map(({ tensor }) => tensor), share.tensor);
      return [made.outputs.map(resolve), made.results ? [resolve(made.results)] : []];
    });
    const f = new CapturedFunction(recorder, [...outputs, ...results]);
    const layout: FrameLayout = { arguments: args, saved: [], extra: [] };
    return {
      layout,
      positions: { inputs: 0, targets: inputs.length, share: inputs.length + targets.length },
      F: new CallPlan(f, layout),
      outputCount: outputs.length,
      hasResults: results.length > 0,
      functions: [f],
    };
  } finally {
    e.endScope();
    recorder.dispose();
    binding.endCapture();
  }
}
