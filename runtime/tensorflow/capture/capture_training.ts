/** Captures a stage's F, B and W for one set of shapes. @module */
import { tf } from "../../../deps.ts";
import type { TensorSpec } from "../../../ring/dtype.ts";
import type { BatchStatistics } from "../../../stages/context.ts";
import type { Workload } from "../../../stages/executor.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import {
  type Around,
  backward,
  type Dependence,
  dependence,
  record,
  type Recording,
} from "../../../stages/tape.ts";
import { engine } from "../../../stages/tfjs.ts";
import { typeAttr } from "../binding/attributes.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import { TF_FLOAT, toTf } from "../binding/dtypes.ts";
import { GraphRecorder } from "../binding/graph_recorder.ts";
import type { Argument, GraphTensor } from "../binding/graph_tensor.ts";
import { CallPlan } from "./call_plan.ts";
import { type FrameLayout, SAVED } from "./frame.ts";
import { CapturedFunction } from "./captured_function.ts";
import type { LayerClock } from "./layer_clock.ts";
import { type Draw, recordingSource } from "./random.ts";
import type { FirstAndLater, StageVariables, TrainProgram } from "./program.ts";
import { type Accumulation, WeightGradientRecorder } from "./weight_gradients.ts";

/**
 * Captures a training program.
 *
 * @param clock when given, F answers with a vector of stamps after its results, B after its input gradients,
 * W with nothing else
 * @throws {CaptureError} if the stage's layers cannot be captured
 */
export function captureTraining(
  backend: NodeBackend,
  model: StageModel,
  variables: StageVariables,
  workload: Workload,
  clock?: LayerClock,
): TrainProgram {
  return new Tracer(backend, model, variables, workload, clock).trace();
}

class Tracer {
  readonly #recorders: GraphRecorder[] = [];
  readonly #functions: CapturedFunction[] = [];
  readonly #draws: Draw[] = [];
  readonly #label: string;
  #results: tf.Tensor | undefined;

  constructor(
    readonly backend: NodeBackend,
    readonly model: StageModel,
    readonly variables: StageVariables,
    readonly workload: Workload,
    readonly clock: LayerClock | undefined,
  ) {
    this.#label = `stage${model.config.index}`;
  }

  trace(): TrainProgram {
    const e = engine();
    e.startScope("stagger.capture");
    let recording: Recording | undefined;
    try {
      const forward = this.#forward();
      recording = forward.recording;
      return this.#backward(forward);
    } catch (error) {
      for (const f of this.#functions) f.dispose();
      throw error;
    } finally {
      this.model.probe = undefined;
      recording?.dispose();
      recording?.outputs.forEach((t) => t.dispose());
      this.#results?.dispose();
      e.endScope();
      for (const recorder of this.#recorders) recorder.dispose();
      this.backend.binding.endCapture();
    }
  }

  /** Runs the layers with the tape on, ops going to F's graph. */
  #forward(): Forward {
    const { backend, model, workload } = this;
    const graph = this.#recorder("F");
    const argument = (label: string, { dtype, shape }: TensorSpec) =>
      this.#argument(graph, label, toTf(dtype), shape);
    const inputs = workload.inputs.map((spec, i) => argument(`input ${i}`, spec));
    const targets = workload.targets.map((spec, i) => argument(`target ${i}`, spec));
    const share = argument("share", { dtype: "float32", shape: [] });
    let loss: tf.Tensor | undefined;
    model.probe = this.clock?.probe(graph);
    const recording = backend.binding.record(graph, () =>
      record(() => {
        const random = recordingSource(backend, graph, this.#draws);
        const made = model.train(tensors(inputs), tensors(targets), share.tensor, random);
        this.#addStatistics(graph, made.statistics, share.tensor);
        this.#results = made.results && tf.keep(made.results);
        loss = made.loss;
        return [...made.outputs, ...(loss ? [loss] : [])];
      }));
    const dependent = dependence(
      recording.nodes,
      inputs.map(({ tensor }, i) => ({ tensor, wanted: model.config.inputs[i]!.needsGradient })),
      model.trainable.map(({ variable }) => variable.val.id),
    );
    return { graph, inputs, targets, share, recording, loss, dependent };
  }

  /** Runs the tape backward, ops going to the graphs of B and W, or to one for both. */
  #backward(forward: Forward): TrainProgram {
    const { inputs, recording, loss, dependent } = forward;
    const { model, backend, workload } = this;
    const { config } = model;
    const outputs = recording.outputs.slice(0, config.outputs.length);
    const wanted = inputs.filter((_, i) => config.inputs[i]!.needsGradient);
    const pieces: Pieces = { gradients: [], fused: undefined, b: undefined, w: undefined, batched: [] };
    if (model.trainable.length === 0 && wanted.length === 0) {
      return this.#define(forward, pieces, outputs, []);
    }
    const graph = this.#recorder(workload.split ? "B" : "BW");
    const seeds = outputs.map((output, i) => {
      if (!config.outputs[i]!.needsGradient) return undefined;
      const gradient = this.#argument(graph, `gradient of output ${i}`, TF_FLOAT, output.shape);
      pieces.gradients.push(gradient);
      return gradient.tensor;
    });
    const back = backend.binding.record(graph, () => {
      const all = [...seeds, ...(loss ? [tf.scalar(1)] : [])];
      return backward(recording, all, tensors(wanted), dependent, this.#around(graph));
    });
    const inputGradients = backend.binding.record(
      graph,
      () => back.inputGradients.map((dx, i) => this.#resolve(dx ?? tf.zeros(wanted[i]!.tensor.shape))),
    );
    const ran = { recording, back, dependent, graph };
    const w = new WeightGradientRecorder(backend, model, this.variables.accumulators, this.clock, ran);
    if (workload.split) {
      pieces.w = w.record(this.#recorder("W"));
      for (const k of workload.weightBatches) {
        if (k > 1) pieces.batched.push([k, w.recordBatched(this.#recorder(`W${k}`), k)]);
      }
      pieces.b = { graph, outputs: inputGradients };
    } else pieces.fused = { ...w.record(graph), outputs: inputGradients };
    return this.#define(forward, pieces, outputs, [...w.added]);
  }

  /** Makes functions of the graphs: first those that read, which tell what F and B must hand on. */
  #define(
    { graph, inputs, targets, share }: Forward,
    pieces: Pieces,
    outputs: readonly tf.Tensor[],
    added: readonly number[],
  ): TrainProgram {
    const stamps = (graph: GraphRecorder | undefined) => graph && this.clock?.vector(graph);
    const stampsW = stamps(pieces.w?.graph);
    if (stampsW) pieces.w = { ...pieces.w!, outputs: [stampsW.tensor] };
    const stampsB = stamps(pieces.b?.graph);
    const makeBoth = ({ graph, outputs, first, later }: Accumulation) => {
      const f = this.#function(graph, outputs, first);
      return { first: this.clock ? f : this.#function(graph, outputs, later), later: f };
    };
    const w = pieces.w && pieces.w.later.size > 0 ? makeBoth(pieces.w) : undefined;
    const batched = pieces.batched.map(([k, piece]) => [k, makeBoth(piece)] as const);
    const weightFunctions = [w, ...batched.map(([, f]) => f)].flatMap((f) => f ? [f.first, f.later] : []);
    const graphB = pieces.b?.graph;
    const extra = savedBy(weightFunctions).filter((t) => t.recorder === graphB);
    const stamped = stampsB ? [stampsB.tensor] : [];
    const b = pieces.b && this.#function(pieces.b.graph, [...pieces.b.outputs, ...stamped, ...extra]);
    const fused = pieces.fused && makeBoth(pieces.fused);
    const readers = [...weightFunctions, ...(b ? [b] : []), ...(fused ? [fused.first, fused.later] : [])];
    const saved = savedBy(readers).filter((t) => t.recorder === graph);
    const results = this.#results ? [this.#results] : [];
    const made = this.backend.binding.record(
      graph,
      () => [...outputs, ...results].map((t) => this.#resolve(t)),
    );
    const stampsF = stamps(graph);
    const f = this.#function(graph, [...made, ...(stampsF ? [stampsF.tensor] : []), ...saved]);
    const args = [...inputs, ...targets, share, ...pieces.gradients].map(({ argument }) => argument);
    for (const draw of this.#draws) args.push(draw.key, draw.counter);
    const layout: FrameLayout = { arguments: args, saved, extra };
    const plan = (f: CapturedFunction) => new CallPlan(f, layout);
    const both = (f: FirstAndLater<CapturedFunction> | undefined) =>
      f && { first: plan(f.first), later: plan(f.later) };
    const W = both(w);
    const batchedW = new Map(batched.map(([k, f]) => [k, both(f)!]));
    const afterB = [W, ...batchedW.values()].flatMap((f) => f ? [f.first, f.later] : []);
    return {
      layout,
      positions: {
        inputs: 0,
        targets: inputs.length,
        share: inputs.length + targets.length,
        outputGradients: inputs.length + targets.length + 1,
        draws: inputs.length + targets.length + 1 + pieces.gradients.length,
      },
      draws: this.#draws,
      F: plan(f),
      outputCount: outputs.length,
      hasResults: results.length > 0,
      B: b && plan(b),
      BW: both(fused),
      W,
      batchedW,
      inputGradientCount: pieces.b?.outputs.length ?? pieces.fused?.outputs.length ?? 0,
      savedForW: saved.map((_, i) => afterB.some((p) => p.reads(SAVED, i))),
      added,
      functions: this.#functions,
      stamps: { F: stampsF?.labels ?? [], B: stampsB?.labels ?? [], W: stampsW?.labels ?? [] },
    };
  }

  /** Marks the end of each op's backward, if there is a clock. */
  #around(graph: GraphRecorder): Around | undefined {
    const { clock } = this;
    return clock && ((node, body) => {
      const result = body();
      clock.mark(graph, clock.layerOf(node));
      return result;
    });
  }

  /** Adds the micro-batch's share of BatchNorm statistics: `[mean, mean^2, variance]`, each over all layers. */
  #addStatistics(
    graph: GraphRecorder,
    statistics: readonly BatchStatistics[],
    share: tf.Tensor,
  ): void {
    if (statistics.length === 0) return;
    const sum = this.variables.statistics(
      statistics.map(({ layer, mean }) => ({ layer, channels: mean.size })),
    );
    const packed = tf.tidy(() => {
      const mean = tf.concat(statistics.map((s) => s.mean));
      const variance = tf.concat(statistics.map((s) => s.variance));
      return tf.mul(tf.concat([mean, tf.square(mean), variance]), share);
    });
    for (const { mean, variance } of statistics) tf.dispose([mean, variance]);
    graph.write("AssignAddVariableOp", [typeAttr("dtype", sum.dtype)], sum, [this.#resolve(packed)]);
  }

  #recorder(kind: string): GraphRecorder {
    const recorder = new GraphRecorder(this.backend.binding.context, `${this.#label}_${kind}`);
    this.#recorders.push(recorder);
    this.clock?.watch(recorder);
    return recorder;
  }

  #argument(graph: GraphRecorder, label: string, dtype: number, shape: readonly number[]): Traced {
    const argument: Argument = { kind: "argument", label };
    const metadata = this.backend.binding.argument(graph, argument, dtype, shape);
    return { argument, tensor: this.backend.createOutputTensor(metadata) };
  }

  #resolve(t: tf.Tensor): GraphTensor {
    return this.backend.binding.resolve(idOf(this.backend, t));
  }

  #function(
    graph: GraphRecorder,
    outputs: readonly GraphTensor[],
    excluded?: ReadonlySet<bigint>,
  ): CapturedFunction {
    const f = new CapturedFunction(graph, outputs, excluded);
    this.#functions.push(f);
    return f;
  }
}

interface Forward {
  readonly graph: GraphRecorder;
  readonly inputs: readonly Traced[];
  readonly targets: readonly Traced[];
  readonly share: Traced;
  readonly recording: Recording;
  readonly loss: tf.Tensor | undefined;
  readonly dependent: Dependence;
}

/** An argument with the tensor that stands for it while tracing. */
interface Traced {
  readonly argument: Argument;
  readonly tensor: tf.Tensor;
}

/** What the backward recorded. */
interface Pieces {
  readonly gradients: Traced[];
  fused: Accumulation | undefined;
  b: { graph: GraphRecorder; outputs: readonly GraphTensor[] } | undefined;
  w: Accumulation | undefined;
  readonly batched: [number, Accumulation][];
}

function tensors(traced: readonly Traced[]): tf.Tensor[] {
  return traced.map(({ tensor }) => tensor);
}

/** Tensors of other graphs that functions read. */
function savedBy(functions: readonly CapturedFunction[]): GraphTensor[] {
  const found = new Set<GraphTensor>();
  for (const { inputs } of functions) {
    for (const { source } of inputs) if (source.kind === "saved") found.add(source.tensor);
  }
  return [...found];
}
