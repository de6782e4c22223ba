/** Errors on their way from a worker to the caller. @module */

/** Where in a run something failed. */
export interface FailurePlace {
  readonly stage: number;
  /** Which of several replicas. */
  readonly replica?: number | undefined;
  readonly device: string;
  /** Optimizer step; -1 outside of steps. */
  readonly step: number;
  /** The action, such as "F3", or what else the worker was doing. */
  readonly action: string;
  /** -1 where none applies. */
  readonly microBatch: number;
  /** The layer that was computing, if one was. */
  readonly layer?: string;
}

/** Plain data that passes through `postMessage`. */
export interface PortableFailure {
  readonly place: FailurePlace;
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  /** Whether this worker stopped only because another had failed. */
  readonly aborted: boolean;
}

/** A stage failed: the first error of a run, with where it happened. */
export class StageError extends Error {
  /** "StageError". */
  override readonly name = "StageError";
  /** Index of the stage. */
  readonly stage: number;
  /** Which of several replicas, if there are. */
  readonly replica: number | undefined;
  /** Name of its device. */
  readonly device: string;
  /** Optimizer step; -1 outside of steps. */
  readonly step: number;
  /** The action, such as "F3", or what else the worker was doing. */
  readonly action: string;
  /** Micro-batch; -1 where none applies. */
  readonly microBatch: number;
  /** The layer that was computing, if one was. */
  readonly layer: string | undefined;

  /** Made from what a worker reports. */
  constructor(failure: PortableFailure) {
    const { stage, replica, device, step, action, microBatch, layer } = failure.place;
    const parts = [
      ...(step >= 0 ? [`step ${step}`] : []),
      ...(microBatch >= 0 ? [`micro-batch ${microBatch}`] : []),
      `action ${action}`,
      ...(layer ? [`layer "${layer}"`] : []),
    ];
    super(
      `${describePlace(failure.place)} on ${device} failed (${
        parts.join(", ")
      }): ${failure.name}: ${failure.message}`,
    );
    this.stage = stage;
    this.replica = replica;
    this.device = device;
    this.step = step;
    this.action = action;
    this.microBatch = microBatch;
    this.layer = layer;
    this.cause = Object.assign(new Error(failure.message), { name: failure.name, stack: failure.stack });
  }
}

/** "Stage 1", or "Replica 1" where each device has the whole model. */
export function describePlace({ stage, replica }: Pick<FailurePlace, "stage" | "replica">): string {
  return replica === undefined ? `Stage ${stage}` : `Replica ${replica}`;
}

/** An engine does not start on a device. */
export class EngineError extends Error {
  /** "EngineError". */
  override readonly name = "EngineError";
}

/** Whether a stage failed because its engine does not start. */
export function isEngineFailure(error: unknown): error is StageError & { cause: Error } {
  return error instanceof StageError && (error.cause as Error).name === "EngineError";
}

/** Makes an error portable. */
export function portable(error: unknown, place: FailurePlace, aborted: boolean): PortableFailure {
  const e = error instanceof Error ? error : new Error(String(error));
  return { place, name: e.name, message: e.message, stack: e.stack ?? e.message, aborted };
}
