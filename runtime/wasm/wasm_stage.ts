/** A stage on the engine "wasm": it runs op by op, once it is known that it can and what memory it takes. @module */
import type { Clipping } from "../../stages/clipping.ts";
import type { RandomSource } from "../../stages/context.ts";
import type { Workload } from "../../stages/executor.ts";
import type { OptimizerSpec } from "../../stages/optimizers.ts";
import type { StageMemory } from "../../stages/stage_memory.ts";
import type { StageModel } from "../../stages/stage_model.ts";
import { EagerStage, type GradientAdder } from "../worker/eager_stage.ts";
import { checkKernels } from "./check_kernels.ts";
import { measureMemory } from "./measure_memory.ts";
import type { StartedBackend } from "./start_backend.ts";
import { wasmUpdateRule } from "./update_rule.ts";

/** Executes a stage op by op. A `Value` is a `tf.Tensor`. */
export class WasmStage extends EagerStage {
  /** By what a workload is but for the number of samples. */
  readonly #memory = new Map<string, StageMemory | undefined>();
  /** Places of weights by their tensors' ids. */
  readonly #positions: ReadonlyMap<number, number>;

  constructor(
    model: StageModel,
    optimizer: OptimizerSpec | undefined,
    random: (step: number, firstSample: number) => RandomSource,
    readonly device: StartedBackend,
    clipping?: Clipping,
  ) {
    super(model, optimizer && wasmUpdateRule(device, optimizer), random, clipping);
    this.#positions = new Map(model.weights.map(({ variable }, i) => [variable.val.id, i]));
  }

  /**
   * Sees that nothing is missing, before the first step.
   *
   * @throws {MissingKernelError} naming layer and kernel
   */
  override prepare(workload: Workload): number {
    const start = performance.now();
    this.memory(workload);
    return (performance.now() - start) / 1000;
  }

  /** @throws {MissingKernelError} naming layer and kernel */
  memory(workload: Workload): StageMemory | undefined {
    const { mode, split, inputs, targets } = workload;
    const key = JSON.stringify([
      mode,
      split,
      ...[...inputs, ...targets].map(({ shape, dtype }) => [dtype, shape.slice(1)]),
    ]);
    if (!this.#memory.has(key)) this.#memory.set(key, this.#measure(workload));
    return this.#memory.get(key);
  }

  /** Products add to what was accumulated in place: a pass over memory of its own would cost as much as some of them. */
  protected override adder(): GradientAdder | undefined {
    const { optimizer, device: { backend, kernels } } = this;
    if (!kernels) return undefined;
    const added = new Set<number>();
    return {
      run: (gradient) => {
        const { id } = gradient.target;
        const position = this.#positions.get(id);
        const sum = position === undefined || !gradient.overBatch ? undefined : optimizer.gradient(position);
        // A layer that is used several times has as many gradients: the first one holds the sum, the others do not.
        if (!sum || added.has(id) || backend.refCount(sum.dataId) > 1) return gradient.run();
        const outcome = kernels.adding(sum, () => gradient.run());
        if (outcome.added) added.add(id);
        return outcome.made;
      },
      added: (id) => added.has(id),
    };
  }

  /** Runs the stage; where that fails, it may lack a kernel, and other errors are left to the step, which places them. */
  #measure(workload: Workload): StageMemory | undefined {
    const { model, optimizer: update, device: { heap, kernels } } = this;
    const measured = { executor: this, model, update, heap, copiesWeights: kernels === undefined };
    try {
      return measureMemory(measured, workload, (observer) => {
        this.observer = observer;
        model.probe = observer?.probe;
      });
    } catch {
      checkKernels(model, workload, this.random(0, 0));
    }
  }
}
