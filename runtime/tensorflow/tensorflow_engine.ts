/** The engine "tensorflow" in a worker. @module */
import type { WorkerDevice, WorkerEngine } from "../protocol.ts";
import type { WorkerEngineHandle } from "../worker/engine_handle.ts";
import { startBackend } from "./start_backend.ts";
import { CapturedStage } from "./capture/captured_stage.ts";
import { Context } from "./binding/context.ts";
import { HandleTensors } from "./binding/engine_tensors.ts";
import { setLowerings } from "./kernels/lowering.ts";
import { updateRule } from "../../stages/optimizers.ts";
import { EagerStage } from "../worker/eager_stage.ts";
import { eagerSource } from "./capture/random.ts";
import { EagerTensors } from "./binding/eager_tensors.ts";

/** Starts it on a device. @throws {Error} with what is missing, if it does not start */
export async function startTensorflow(
  engine: Extract<WorkerEngine, { name: "tensorflow" }>,
  device: WorkerDevice,
): Promise<WorkerEngineHandle> {
  const context = new Context({
    libraries: engine.libraries,
    device: device.kind === "cpu" ? "cpu" : { cuda: device.index },
    memoryGrowth: engine.memoryGrowth,
    memoryFraction: engine.memoryFraction,
  });
  const backend = await startBackend(context);
  setLowerings(engine.lowerings ?? !context.isGpu); // a GPU's own convolutions need no help
  const tensors = new HandleTensors(context);
  const eager = new EagerTensors(backend, tensors);
  return {
    description: `tensorflow ${context.version}`,
    tensors,
    captures: true,
    execute(model, { seed, optimizer, clipping, replicas }, capture) {
      if (capture) {
        return { executor: new CapturedStage(backend, model, seed, optimizer, clipping, replicas), tensors };
      }
      const random = (step: number, firstSample: number) => eagerSource(backend, { seed, step, firstSample });
      const rule = optimizer && updateRule(optimizer);
      return { executor: new EagerStage(model, rule, random, clipping), tensors: eager };
    },
  };
}
