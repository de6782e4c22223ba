/** One worker: one stage on one device. Answers the coordinator; runs steps through the interpreter. @module */
import { AbortedError, AbortFlag } from "../../ring/abort.ts";
import { openGroup } from "../../ring/open_group.ts";
import type { StageExecutor } from "../../stages/executor.ts";
import { resolveLosses } from "../../stages/losses.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { type FailurePlace, portable } from "../errors.ts";
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
let model: StageModel;
let executor: StageExecutor;
let interpreter: Interpreter;
let clipping: NormClipping | undefined;
/** Why the stage runs eagerly though capturing was asked for. */
let eager: string | undefined;
const lanes = new Map<number, Lane>();

/** Runs `body`; what it throws becomes an answer, and stops the other stages if `raise` is set. */
async function reply<T>(doing: string, body: () => T | Promise<T>, raise = false): Promise<Reply<T>> {
  try {
    return { ok: true, value: await body() };
  } catch (error) {
    const aborted = error instanceof AbortedError;
    if (raise && !aborted) abort.raise(start.stage);
    const action = interpreter?.current;
    const place: FailurePlace = {
      stage: start.stage,
      device: start.device.name,
      step: action ? interpreter.step : -1,
      action: describeAction(action, doing),
      microBatch: action?.microBatch ?? -1,
      ...(action?.kind === "F" && model?.currentLayer ? { layer: model.currentLayer } : {}),
    };
    return { ok: false, failure: portable(error, place, aborted) };
  }
}

/** Makes the executor; a stage that cannot be captured runs eagerly. */
function makeExecutor(capture: boolean): void {
  const made = engine.execute(model, setup, capture && engine.captures);
  executor = made.executor;
  interpreter = new Interpreter(executor, made.tensors, abort, clipping);
  executor.loadWeights(setup.weights);
}

/** The stage's part in clipping by norm. */
function makeClipping({ clipping, norms }: StageSetup): NormClipping | undefined {
  if (clipping?.by !== "norm") return undefined;
  return new NormClipping(clipping.limit, norms && openGroup(norms, start.stage, abort));
}

async function makeModel(): Promise<void> {
  const losses = setup.losses && await resolveLosses(setup.outputs, setup.losses);
  model = new StageModel(setup.config, losses);
}

/** Goes over to eager execution, keeping the weights. */
async function fallBack(error: unknown): Promise<void> {
  if (!(error instanceof Error) || error.name !== "CaptureError") throw error;
  const layer = model.currentLayer ? `layer "${model.currentLayer}"` : "a layer";
  eager = `${layer} cannot be captured: it ${error.message}`;
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
