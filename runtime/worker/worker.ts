/** One worker: one stage on one device. Answers the coordinator; runs steps through the interpreter. @module */
import { AbortedError, AbortFlag } from "../../ring/abort.ts";
import type { Group } from "../../ring/group.ts";
import { openGroup } from "../../ring/open_group.ts";
import type { StageExecutor } from "../../stages/executor.ts";
import { resolveLosses } from "../../stages/losses.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { type FailurePlace, portable } from "../errors.ts";
import { checkWeights } from "./check_weights.ts";
import { ChainedStage } from "./chained_stage.ts";
import { NormClipping } from "./norm_clipping.ts";
import { describeAction, Interpreter, Lane } from "./interpreter.ts";
import { gaugeStage } from "../gauge.ts";
import { measureStage, profileStage } from "../measure.ts";
import type { Reply, StageSetup, StepCommand, WorkerApi, WorkerStart } from "../protocol.ts";
import type { WorkerEngineHandle } from "./engine_handle.ts";
import { startEngine } from "./start_engine.ts";
import { serve, transfer } from "../coordinator/worker_link.ts";

let start: WorkerStart;
let abort: AbortFlag;
let engine: WorkerEngineHandle;
let setup: StageSetup;
/** One, or one for each segment. */
let models: StageModel[] = [];
let chain: ChainedStage | undefined;
let executor: StageExecutor;
let interpreter: Interpreter;
let clipping: NormClipping | undefined;
/** By which replicas add up. */
let sums: Group | undefined;
/** Why the stage runs eagerly though capturing was asked for. */
let eager: string | undefined;
const lanes = new Map<number, Lane>();

/** Runs `body`; what it throws becomes an answer, and stops the other stages if `raise` is set. */
async function reply<T>(doing: string, body: () => T | Promise<T>, raise = false): Promise<Reply<T>> {
  try {
    return { ok: true, value: await body() };
  } catch (error) {
    const aborted = error instanceof AbortedError;
    if (raise && !aborted) abort.raise(start.worker);
    const action = interpreter?.current;
    const layer = currentLayer();
    const place: FailurePlace = {
      stage: start.stage,
      replica: start.replica,
      device: start.device.name,
      step: action ? interpreter.step : -1,
      action: describeAction(action, doing),
      microBatch: action?.microBatch ?? -1,
      ...(action?.kind === "F" && layer ? { layer } : {}),
    };
    return { ok: false, failure: portable(error, place, aborted) };
  }
}

/** The layer that computes, or did so last. */
function currentLayer(): string | undefined {
  return models[chain?.current ?? 0]?.currentLayer;
}

/** Makes the executor; a stage that cannot be captured runs eagerly. */
function makeExecutor(capture: boolean): void {
  const made = models.map((model) => engine.execute(model, setup, capture && engine.captures));
  const { tensors } = made[0]!;
  const segments = made.map(({ executor }, i) => ({ config: models[i]!.config, executor }));
  chain = sums && new ChainedStage(segments, tensors, sums);
  executor = chain ?? made[0]!.executor;
  interpreter = new Interpreter(executor, tensors, abort, clipping, sums);
  executor.loadWeights(setup.weights);
}

/** The stage's part in clipping by norm. */
function makeClipping({ clipping, norms }: StageSetup): NormClipping | undefined {
  if (clipping?.by !== "norm") return undefined;
  return new NormClipping(clipping.limit, norms && openGroup(norms, start.stage, abort));
}

async function makeModel(): Promise<void> {
  const losses = setup.losses && await resolveLosses(setup.outputs, setup.losses);
  models = (setup.config.segments ?? [setup.config]).map((config) => new StageModel(config, losses));
}

/** Goes over to eager execution, keeping the weights. */
async function fallBack(error: unknown): Promise<void> {
  if (!(error instanceof Error) || error.name !== "CaptureError") throw error;
  const layer = currentLayer();
  eager = `${layer ? `layer "${layer}"` : "a layer"} cannot be captured: it ${error.message}`;
  executor.storeWeights(setup.weights);
  executor.dispose();
  await makeModel();
  makeExecutor(false);
}

/** Runs `body`; where the stage turns out not to be captured, runs it again eagerly. */
async function orEagerly<T>(body: () => T): Promise<T> {
  try {
    return body();
  } catch (error) {
    await fallBack(error);
    return body();
  }
}

const api: WorkerApi = {
  start: (message) => {
    start = message;
    abort = new AbortFlag(message.abort);
    return reply("start", async () => {
      engine = await startEngine(message);
      for (const module of message.modules) await import(module);
      return { engine: engine.description, ...(engine.notice ? { notice: engine.notice } : {}) };
    });
  },

  build: (message) =>
    reply("build", async () => {
      executor?.dispose();
      lanes.clear();
      eager = undefined;
      setup = message;
      clipping = makeClipping(setup);
      sums = setup.sums && openGroup(setup.sums, start.replica!, abort);
      await makeModel();
      makeExecutor(setup.capture);
    }),

  openLane: (lane) => reply("open rings", () => void lanes.set(lane.id, new Lane(lane, abort))),

  closeLane: (id) => reply("close rings", () => void lanes.delete(id)),

  prepare: (workloads) =>
    reply("capture", async () => {
      const seconds = await orEagerly(() =>
        workloads.reduce((sum, workload) => sum + executor.prepare(workload), 0)
      );
      return eager ? { seconds, eager } : { seconds };
    }),

  memory: (workload) => reply("prepare", () => executor.memory?.(workload)),

  measure: (workload, outputGradients) =>
    reply(
      "measure",
      () => orEagerly(() => measureStage(executor, interpreter.tensors, workload, outputGradients)),
    ),

  profile: (workload, outputGradients) =>
    reply("profile", async () => {
      const measure = () => profileStage(executor, interpreter.tensors, workload, outputGradients);
      const costs = await orEagerly(measure);
      return eager ? { costs, eager } : { costs };
    }),

  gauge: (workload) =>
    reply("measure", () => orEagerly(() => gaugeStage(executor, interpreter.tensors, workload))),

  run: (command: StepCommand) =>
    reply("step", () => {
      const lane = lanes.get(command.lane)!;
      const report = interpreter.run(lane, command);
      return transfer(report, report.predictions.flat().map(({ data }) => data));
    }, true),

  reset: () =>
    reply("reset", () => {
      executor.reset();
      interpreter.reset();
      for (const lane of lanes.values()) lane.reset();
    }),

  loadWeights: () => reply("load weights", () => executor.loadWeights(setup.weights)),

  storeWeights: () => reply("store weights", () => executor.storeWeights(setup.weights)),

  weightChecks: () => reply("check weights", () => checkWeights(executor, setup)),

  counters: () =>
    reply("counters", () => ({
      rings: Object.assign({}, ...[...lanes.values()].map((lane) => lane.counters())),
      counts: executor.counts(),
    })),

  dispose: () =>
    reply("dispose", () => {
      executor?.dispose();
      lanes.clear();
    }),
};

serve(api);
