/** A stage on the engine "wasm": it runs op by op, once it is known that each op has its kernel. @module */
import type { LayerCost } from "../../stages/balance.ts";
import type { ProfileInputs, Workload } from "../../stages/executor.ts";
import { EagerStage } from "../worker/eager_stage.ts";
import { checkKernels } from "./check_kernels.ts";

/** Executes a stage op by op. A `Value` is a `tf.Tensor`. */
export class WasmStage extends EagerStage {
  /**
   * Sees that nothing is missing, before the first step.
   *
   * @throws {MissingKernelError} naming layer and kernel
   */
  override prepare(workload: Workload): number {
    const start = performance.now();
    checkKernels(this.model, workload, this.random(0, 0));
    return (performance.now() - start) / 1000;
  }

  override profile(
    workload: Workload,
    inputs: () => ProfileInputs,
    rounds: number,
    budgetMs: number,
  ): Record<string, LayerCost> {
    this.prepare(workload);
    return super.profile(workload, inputs, rounds, budgetMs);
  }
}
