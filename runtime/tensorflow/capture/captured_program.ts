/**
 * A stage's F, B and W for one set of shapes, captured as TensorFlow functions.
 *
 * ```
 *   F   inputs, targets, share      -> outputs, results, what the backward keeps ("saved")
 *   B   saved, output gradients     -> input gradients, what W keeps ("extra")
 *   W   saved, extra                -> accumulators, in place
 *   BW  B and W as one
 * ```
 * A weight's gradient that falls out of B is added to its accumulator there. One that W computes is assigned by
 * the step's first W and added by later ones, so that nothing large is ever zeroed.
 * @module
 */
import { tf } from "../../../deps.ts";
import type { TensorSpec } from "../../../ring/dtype.ts";
import type { BatchStatistics } from "../../../stages/context.ts";
import type { Workload } from "../../../stages/executor.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import {
  type Around,
  backward,
  type BackwardResult,
  type Dependence,
  dependence,
  type PendingGradient,
  record,
  type Recording,
  weightGradients,
} from "../../../stages/tape.ts";
import { engine } from "../../../stages/tfjs.ts";
import { typeAttr } from "../binding/attributes.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import { CallPlan, type FrameLayout, SAVED } from "./call_plan.ts";
import { CapturedFunction } from "./captured_function.ts";
import { TF_FLOAT, toTf } from "../binding/dtypes.ts";
import { type Argument, GraphRecorder, type GraphTensor } from "../binding/graph_recorder.ts";
import type { LayerClock } from "./layer_clock.ts";
import { type Draw, recordingSource } from "./random.ts";
import { assignAttributes, type Variable } from "../binding/variable.ts";

/** What a program's functions read and write beside their arguments. */
export interface StageVariables {
  /** By position in the stage's weights; undefined for weights that are not trained. */
  readonly accumulators: readonly (Variable | undefined)[];
  /** Packed sums of the statistics of these BatchNorm calls, in the order of the forward. */
  statistics(order: readonly StatisticsCall[]): Variable;
}

/** One call of a BatchNorm layer in a forward. */
export interface StatisticsCall {
  readonly layer: BatchStatistics["layer"];
  readonly channels: number;
}

/** A function that is run for the first micro-batch of a step in one form, and for later ones in another. */
export interface FirstAndLater {
  readonly first: CallPlan;
  readonly later: CallPlan;
}

/** Positions among the layout's arguments of the first of each kind; those of one kind stand in a row. */
export interface ArgumentPositions {
  readonly inputs: number;
  readonly targets: number;
  readonly share: number;
  readonly outputGradients: number;
  /** Key and counter of each draw, in turn. */
  readonly draws: number;
}

/** A captured training program. */
export interface TrainProgram {
  readonly layout: FrameLayout;
  readonly positions: ArgumentPositions;
  readonly draws: readonly Draw[];
  readonly F: CallPlan;
  readonly outputCount: number;
  /** Whether F's output after `outputs` is the vector of results. */
  readonly hasResults: boolean;
  /** Without weights to train here, and nobody waiting for gradients, there is no backward. */
  readonly B: CallPlan | undefined;
  readonly BW: FirstAndLater | undefined;
  readonly W: FirstAndLater | undefined;
  /** W over several micro-batches, by their number. */
  readonly batchedW: ReadonlyMap<number, FirstAndLater>;
  /** How many input gradients B answers with. */
  readonly inputGradientCount: number;
  /** Of `layout.saved`, which W still needs after B. */
  readonly savedForW: readonly boolean[];
  /** Positions of the stage's weights whose accumulator must be zero when a step begins. */
  readonly added: readonly number[];
  readonly functions: readonly CapturedFunction[];
  /** With a clock: whose time lies between the stamps that F, B and W answer with. */
  readonly stamps: {
    readonly F: readonly string[];
    readonly B: readonly string[];
    readonly W: readonly string[];
  };
}

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
  readonly #positions: ReadonlyMap<number, number>;
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
    this.#positions = new Map(model.weights.map(({ variable }, i) => [variable.val.id, i]));
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
    this.clock?.watch(graph);
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
    const { config } = this.model;
    const outputs = recording.outputs.slice(0, config.outputs.length);
    const wanted = inputs.filter((_, i) => config.inputs[i]!.needsGradient);
    const gradients: Traced[] = [];
    const has = this.model.trainable.length > 0 || wanted.length > 0;
    const pieces: Pieces = { fused: undefined, b: undefined, w: undefined, batched: [] };
    const added = new Set<number>();
    if (has) {
      const graphB = this.#recorder(this.workload.split ? "B" : "BW");
      this.clock?.watch(graphB);
      for (const [i, output] of outputs.entries()) {
        if (config.outputs[i]!.needsGradient) {
          gradients.push(this.#argument(graphB, `gradient of output ${i}`, TF_FLOAT, output.shape));
        }
      }
      const back = this.backend.binding.record(graphB, () => {
        let next = 0;
        const dys = outputs.map((_, i) =>
          config.outputs[i]!.needsGradient ? gradients[next++]!.tensor : undefined
        );
        const seeds = [...dys, ...(loss ? [tf.scalar(1)] : [])];
        return backward(recording, seeds, tensors(wanted), dependent, this.#around(graphB));
      });
      const inputGradients = this.backend.binding.record(
        graphB,
        () => back.inputGradients.map((dx, i) => this.#resolve(dx ?? tf.zeros(wanted[i]!.tensor.shape))),
      );
      if (this.workload.split) {
        const graphW = this.#recorder("W");
        this.clock?.watch(graphW);
        pieces.w = this.#weights(graphW, graphB, recording, back, dependent, added);
        for (const k of this.workload.weightBatches) {
          if (k > 1) pieces.batched.push([k, this.#batchedWeights(k, recording, back, dependent, added)]);
        }
        pieces.b = { graph: graphB, outputs: inputGradients };
      } else {
        const accumulate = this.#weights(graphB, graphB, recording, back, dependent, added);
        pieces.fused = { ...accumulate, outputs: inputGradients };
      }
    }
    return this.#define(forward, pieces, gradients, outputs, [...added]);
  }

  /** Makes functions of the graphs: first those that read, which tell what F and B must hand on. */
  #define(
    { graph, inputs, targets, share }: Forward,
    pieces: Pieces,
    gradients: readonly Traced[],
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
    const args = [...inputs, ...targets, share, ...gradients].map(({ argument }) => argument);
    for (const draw of this.#draws) args.push(draw.key, draw.counter);
    const layout: FrameLayout = { arguments: args, saved, extra };
    const plan = (f: CapturedFunction) => new CallPlan(f, layout);
    const both = (f: { first: CapturedFunction; later: CapturedFunction } | undefined) =>
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
        draws: inputs.length + targets.length + 1 + gradients.length,
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

  /** W: adds each weight's gradient to its accumulator, in the graph that computed it. */
  #weights(
    graph: GraphRecorder,
    graphB: GraphRecorder,
    recording: Recording,
    back: BackwardResult,
    dependent: Dependence,
    added: Set<number>,
  ): Accumulation {
    const ofB = graphB.size;
    const { clock } = this;
    const gradients = this.backend.binding.record(graph, () => {
      const byId = weightGradients(recording, back.pending, dependent, (pending) => {
        const gradient = pending.run();
        clock?.mark(graph, clock.layerOf(pending.node));
        return gradient;
      });
      return this.#byWeight(byId);
    });
    const first = new Set<bigint>();
    const later = new Set<bigint>();
    for (const [position, { accumulator, weight }] of this.#accumulators()) {
      const gradient = gradients.get(position);
      if (gradient === undefined) {
        added.add(position); // nothing reaches it: its accumulator stays zero
        continue;
      }
      if (gradient.recorder === graphB && (graph !== graphB || gradient.position < ofB)) {
        graphB.write("AssignAddVariableOp", dtypeOf(accumulator), accumulator, [gradient]);
        added.add(position);
      } else this.#assignOrAdd(graph, accumulator, gradient, first, later);
      clock?.mark(graph, weight.spec.layer);
      checkShape(gradient, weight.spec.shape, weight.spec.layer);
    }
    return { graph, outputs: [], first, later };
  }

  /**
   * W over `k` micro-batches. Gradients that are sums over the batch axis take the micro-batches joined along
   * it; the others are computed one by one and summed.
   */
  #batchedWeights(
    k: number,
    recording: Recording,
    back: BackwardResult,
    dependent: Dependence,
    added: ReadonlySet<number>,
  ): Accumulation {
    const graph = this.#recorder(`W${k}`);
    const { binding } = this.backend;
    const joined = new Map<GraphTensor, tf.Tensor>();
    const tensorOf = (t: tf.Tensor) => binding.graphTensor(idOf(this.backend, t));
    /** A tensor per micro-batch, of this graph: one that B made already is another one for each of them. */
    const each = (run: () => GraphTensor): tf.Tensor[] => {
      const parts = Array.from({ length: k }, (_, replica) => {
        graph.replica = replica;
        return this.backend.createOutputTensor(binding.adopt(graph.import(run())));
      });
      graph.replica = 0;
      return parts;
    };
    const join = (t: tf.Tensor): tf.Tensor => {
      const key = tensorOf(t);
      let all = joined.get(key);
      if (all === undefined) {
        all = tf.concat(each(() => key), 0);
        joined.set(key, all);
      }
      return all;
    };
    const gradients = binding.record(graph, () => {
      const byId = weightGradients(recording, back.pending, dependent, (pending: PendingGradient) => {
        if (!pending.overBatch) return tf.addN(each(() => tensorOf(pending.run())));
        const [x, dy] = pending.overBatch.inputs;
        return pending.overBatch.run(join(x), join(dy));
      });
      return this.#byWeight(byId);
    });
    const first = new Set<bigint>();
    const later = new Set<bigint>();
    for (const [position, { accumulator }] of this.#accumulators()) {
      const gradient = gradients.get(position);
      if (gradient && !added.has(position)) this.#assignOrAdd(graph, accumulator, gradient, first, later);
    }
    return { graph, outputs: [], first, later };
  }

  #assignOrAdd(
    graph: GraphRecorder,
    accumulator: Variable,
    gradient: GraphTensor,
    first: Set<bigint>,
    later: Set<bigint>,
  ): void {
    // A stamp comes after all that it times: with a clock, both forms are the later one.
    if (!this.clock) {
      // The gradient may be a view of what was handed over: of the output's gradient for the bias of a single
      // sample, say. That memory belongs to a ring. Snapshot copies then, and costs nothing otherwise.
      const own = graph.op("Snapshot", [typeAttr("T", accumulator.dtype)], [gradient], 1);
      first.add(graph.write("AssignVariableOp", assignAttributes(accumulator), accumulator, own));
      graph.forget(accumulator);
    }
    later.add(graph.write("AssignAddVariableOp", dtypeOf(accumulator), accumulator, [gradient]));
    graph.forget(accumulator);
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
    graph.write("AssignAddVariableOp", dtypeOf(sum), sum, [this.#resolve(packed)]);
  }

  #byWeight(byId: Map<number, tf.Tensor>): Map<number, GraphTensor> {
    const out = new Map<number, GraphTensor>();
    for (const [id, gradient] of byId) {
      const position = this.#positions.get(id);
      if (position !== undefined) {
        out.set(position, this.backend.binding.graphTensor(idOf(this.backend, gradient)));
      }
    }
    return out;
  }

  *#accumulators(): Generator<[number, { accumulator: Variable; weight: StageModel["weights"][number] }]> {
    for (const [position, weight] of this.model.weights.entries()) {
      const accumulator = this.variables.accumulators[position];
      if (accumulator) yield [position, { accumulator, weight }];
    }
  }

  #recorder(kind: string): GraphRecorder {
    const recorder = new GraphRecorder(this.backend.binding.context, `${this.#label}_${kind}`);
    this.#recorders.push(recorder);
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

type Forward = {
  readonly graph: GraphRecorder;
  readonly inputs: readonly Traced[];
  readonly targets: readonly Traced[];
  readonly share: Traced;
  readonly recording: Recording;
  readonly loss: tf.Tensor | undefined;
  readonly dependent: Dependence;
};

/** An argument with the tensor that stands for it while tracing. */
interface Traced {
  readonly argument: Argument;
  readonly tensor: tf.Tensor;
}

/** A graph that accumulates, with the nodes that only its first or only its later form has. */
interface Accumulation {
  readonly graph: GraphRecorder;
  readonly outputs: readonly GraphTensor[];
  readonly first: ReadonlySet<bigint>;
  readonly later: ReadonlySet<bigint>;
}

interface Pieces {
  fused: Accumulation | undefined;
  b: { graph: GraphRecorder; outputs: readonly GraphTensor[] } | undefined;
  w: Accumulation | undefined;
  readonly batched: [number, Accumulation][];
}

function tensors(traced: readonly Traced[]): tf.Tensor[] {
  return traced.map(({ tensor }) => tensor);
}

function dtypeOf(variable: Variable) {
  return [typeAttr("dtype", variable.dtype)];
}

/** Tensors of other graphs that functions read. */
function savedBy(functions: readonly CapturedFunction[]): GraphTensor[] {
  const found = new Set<GraphTensor>();
  for (const { inputs } of functions) {
    for (const { source } of inputs) if (source.kind === "saved") found.add(source.tensor);
  }
  return [...found];
}

function checkShape(gradient: GraphTensor, shape: readonly number[], layer: string): void {
  if (gradient.shape.join() !== shape.join()) {
    throw new Error(
      `Gradient of a weight of layer "${layer}" has shape [${gradient.shape}]: expected [${shape}]`,
    );
  }
}
