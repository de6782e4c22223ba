/**
 * The optimizer's update of a stage, captured: penalties' gradients, clipping, the optimizer's rule in place,
 * BatchNorm's running statistics, and zeros for accumulators that are added to.
 * @module
 */
import { tf } from "../../../deps.ts";
import { type Clipping, joinedNorm } from "../../../stages/clipping.ts";
import { type OptimizerSpec, updateRule, type UpdateScalars } from "../../../stages/optimizers.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import { backward, dependence, record, weightGradients } from "../../../stages/tape.ts";
import { engine } from "../../../stages/tfjs.ts";
import { typeAttr } from "../binding/attributes.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import { CapturedFunction } from "./captured_function.ts";
import { applyFused, fused, updateScalars } from "./fused_update.ts";
import { TF_FLOAT } from "../binding/dtypes.ts";
import type { StatisticsCall } from "./program.ts";
import { GraphRecorder } from "../binding/graph_recorder.ts";
import type { Argument, GraphTensor, Source } from "../binding/graph_tensor.ts";
import { newHandle, readHandle } from "../binding/tensor.ts";
import { assignAttributes, Variable } from "../binding/variable.ts";

/**
 * What gradients are divided by before they are squared: by 1, or where a square overflows, by a power of two under
 * which no float32's does.
 */
const UNITS = [1, 2 ** 96];

/** What the update reads and writes. */
export interface UpdateVariables {
  /** By position in the stage's weights. */
  readonly weights: readonly Variable[];
  readonly accumulators: readonly (Variable | undefined)[];
  /** Packed sums of BatchNorm statistics, once a forward has been captured. */
  statistics: Variable | undefined;
  /** The calls whose statistics are packed, in order. */
  statisticsOrder: readonly StatisticsCall[];
}

/** A captured update with its slots. */
export class CapturedUpdate {
  readonly #backend: NodeBackend;
  readonly #model: StageModel;
  readonly #variables: UpdateVariables;
  readonly #spec: OptimizerSpec;
  readonly #clipping: Clipping | undefined;
  /** Slots by position in the stage's weights. */
  readonly slots = new Map<number, Variable[]>();
  readonly #scalars = new Map<string, Argument>();
  /** What stands for each variable that replicas add up; undefined where there is one replica. */
  readonly #sums: Map<Variable, Argument> | undefined;
  /** The sums of all replicas, for this update. */
  #given = new Map<Argument, bigint>();
  #function: CapturedFunction | undefined;
  #added = "";
  /** Half the sum of squares of each gradient; one for each of `UNITS`. */
  #squares: readonly CapturedFunction[] = [];

  /** @param shared whether gradients and statistics are handed in, as sums over replicas */
  constructor(
    backend: NodeBackend,
    model: StageModel,
    variables: UpdateVariables,
    spec: OptimizerSpec,
    clipping?: Clipping,
    shared = false,
  ) {
    this.#sums = shared ? new Map() : undefined;
    this.#backend = backend;
    this.#model = model;
    this.#variables = variables;
    this.#spec = spec;
    this.#clipping = clipping;
    const { context } = backend.binding;
    for (const [position, accumulator] of variables.accumulators.entries()) {
      if (!accumulator) continue;
      const { shape } = accumulator;
      const slots = updateRule(spec).slots.map(({ name, initial }) => {
        const slot = new Variable(context, name, { shape, dtype: "float32" });
        slot.assign(new Float32Array(slot.byteLength / 4).fill(initial));
        return slot;
      });
      this.slots.set(position, slots);
    }
  }

  /** Captures it, if `added`, the accumulators that must be zero when a step begins, are others than before. */
  prepare(added: readonly number[]): void {
    const key = added.join();
    if (this.#function && key === this.#added) return;
    this.#function?.dispose();
    this.#added = key;
    const zeroed = new Set(added);
    this.#function = this.#capture("U", (graph) => this.#update(graph, zeroed));
    if (this.#clipping?.by !== "norm" || this.slots.size === 0 || this.#squares.length > 0) return;
    this.#squares = UNITS.map((unit) => this.#capture("norm", (graph) => this.#halfSquares(graph, unit)));
  }

  /** Hands in the sums of all replicas, by the variables that they stand for; they are freed after the update. */
  use(sums: ReadonlyMap<Variable, bigint>): void {
    this.#freeSums();
    for (const [variable, handle] of sums) this.#given.set(this.#argumentOf(variable), handle);
  }

  /** The norm of the gradients, the penalties' included; where none is trained, 0. */
  norm(): number {
    const { context } = this.#backend.binding;
    let norm = 0;
    for (const [i, f] of this.#squares.entries()) {
      const [handle] = f.call(BigUint64Array.from(f.inputs, ({ source }) => this.#handleOf(source)));
      const halves = readHandle(context, handle!) as Float32Array;
      context.tf.TFE_DeleteTensorHandle(handle!);
      norm = joinedNorm(Float64Array.from(halves, (half) => Math.sqrt(2 * half))) * UNITS[i]!;
      if (Number.isFinite(norm)) break;
    }
    return norm;
  }

  /** Runs it. @param scale what gradients clipped by norm are multiplied with. @returns the layers' penalty */
  run(step: UpdateScalars, scale = 1): number {
    const f = this.#function!;
    const { context } = this.#backend.binding;
    const values: Record<string, number> = { ...updateScalars(this.#spec, step), scale };
    const temporary: bigint[] = [];
    const inputs = BigUint64Array.from(f.inputs, ({ source }) => {
      const scalar = [...this.#scalars].find(([, argument]) => argument === source);
      if (!scalar) return this.#handleOf(source);
      const [name] = scalar;
      const handle = newHandle(context, TF_FLOAT, [], Float32Array.of(values[name]!));
      temporary.push(handle);
      return handle;
    });
    try {
      const [penalty] = f.call(inputs);
      if (penalty === undefined) return 0;
      const value = this.#backend.binding.readScalar(penalty);
      context.tf.TFE_DeleteTensorHandle(penalty);
      return value;
    } finally {
      for (const handle of temporary) context.tf.TFE_DeleteTensorHandle(handle);
      this.#freeSums();
    }
  }

  dispose(): void {
    this.#freeSums();
    this.#function?.dispose();
    for (const f of this.#squares) f.dispose();
    this.#squares = [];
    for (const slots of this.slots.values()) for (const slot of slots) slot.dispose();
    this.slots.clear();
  }

  #freeSums(): void {
    const { tf } = this.#backend.binding.context;
    for (const handle of this.#given.values()) tf.TFE_DeleteTensorHandle(handle);
    this.#given = new Map();
  }

  /** What a function is given for an input that is no scalar. */
  #handleOf(source: Source): bigint {
    if (source.kind === "variable") return source.variable.handle;
    const given = source.kind === "argument" ? this.#given.get(source) : undefined;
    if (given === undefined) throw new Error("Cannot update: the sums of all replicas were not handed in");
    return given;
  }

  #argumentOf(variable: Variable): Argument {
    let argument = this.#sums!.get(variable);
    if (!argument) {
      argument = { kind: "argument", label: `sum of ${variable.name}` };
      this.#sums!.set(variable, argument);
    }
    return argument;
  }

  /** What was added up: on this device, or on all replicas. */
  #sum(graph: GraphRecorder, variable: Variable): tf.Tensor {
    if (!this.#sums) return this.#tensor(graph.read(variable));
    return this.#tensor(graph.input(this.#argumentOf(variable), variable.dtype, variable.shape));
  }

  #capture(label: string, body: (graph: GraphRecorder) => GraphTensor[]): CapturedFunction {
    const { binding } = this.#backend;
    const graph = new GraphRecorder(binding.context, `stage${this.#model.config.index}_${label}`);
    const e = engine();
    e.startScope("stagger.capture");
    try {
      return new CapturedFunction(graph, binding.record(graph, () => body(graph)));
    } finally {
      e.endScope();
      graph.dispose();
      binding.endCapture();
    }
  }

  /** The update. @param added accumulators to be set to zero */
  #update(graph: GraphRecorder, added: ReadonlySet<number>): GraphTensor[] {
    const { penalty, gradients } = this.#penalties();
    for (const [position, accumulator] of this.#variables.accumulators.entries()) {
      if (!accumulator) continue;
      const gradient = this.#gradient(graph, accumulator, gradients.get(position));
      this.#updateWeight(graph, position, this.#clipped(graph, gradient));
      if (added.has(position)) this.#zero(graph, accumulator);
    }
    this.#updateStatistics(graph);
    const outputs = penalty ? [this.#backend.binding.resolve(idOf(this.#backend, penalty))] : [];
    penalty?.dispose(); // the tape kept it
    return outputs;
  }

  /** Half the sum of squares of each gradient in so large a unit. */
  #halfSquares(graph: GraphRecorder, unit: number): GraphTensor[] {
    const { binding } = this.#backend;
    const { penalty, gradients } = this.#penalties();
    penalty?.dispose(); // the tape kept it
    const halves = this.#variables.accumulators.flatMap((accumulator, position) => {
      if (!accumulator) return [];
      const gradient = this.#gradient(graph, accumulator, gradients.get(position));
      const measured = unit === 1 ? gradient : tf.mul(gradient, 1 / unit);
      const value = binding.resolve(idOf(this.#backend, measured));
      return this.#tensor(graph.op("L2Loss", [typeAttr("T", TF_FLOAT)], [value], 1)[0]!);
    });
    return [binding.resolve(idOf(this.#backend, tf.stack(halves)))];
  }

  /** The layers' penalties, once a batch, and their gradients by position. */
  #penalties(): { penalty: tf.Tensor | undefined; gradients: Map<number, tf.Tensor> } {
    const model = this.#model;
    const gradients = new Map<number, tf.Tensor>();
    if (!model.penalized) return { penalty: undefined, gradients };
    const recording = record(() => [model.penalty()!]);
    const ids = new Map(
      model.trainable.map(({ variable }) => [
        variable.val.id,
        model.weights.findIndex((w) => w.variable === variable),
      ]),
    );
    const dependent = dependence(recording.nodes, [], ids.keys());
    // A penalty depends on weights alone: all of its backward is W's.
    const [penalty] = recording.outputs;
    const back = backward(recording, [], [], dependent);
    const seed = {
      target: penalty!,
      node: recording.nodes[0]!,
      overBatch: undefined,
      run: () => tf.scalar(1),
    };
    for (const [id, gradient] of weightGradients(recording, [...back.pending, seed], dependent)) {
      const position = ids.get(id);
      if (position !== undefined) gradients.set(position, gradient);
    }
    recording.dispose();
    return { penalty, gradients };
  }

  #tensor(t: GraphTensor): tf.Tensor {
    return this.#backend.createOutputTensor(this.#backend.binding.adopt(t));
  }

  /** A weight's gradient. @param penalty that of the layers' penalties */
  #gradient(graph: GraphRecorder, accumulator: Variable, penalty: tf.Tensor | undefined): tf.Tensor {
    const sum = this.#sum(graph, accumulator);
    return penalty ? tf.add(sum, penalty) : sum;
  }

  /** A gradient as the optimizer takes it. */
  #clipped(graph: GraphRecorder, gradient: tf.Tensor): tf.Tensor {
    if (!this.#clipping) return gradient;
    const { by, limit } = this.#clipping;
    if (by === "value") return tf.clipByValue(gradient, -limit, limit);
    return tf.mul(gradient, this.#tensor(this.#scalar(graph, "scale")));
  }

  #updateWeight(graph: GraphRecorder, position: number, gradient: tf.Tensor): void {
    const { binding } = this.#backend;
    const weight = this.#variables.weights[position]!;
    const slots = this.slots.get(position)!;
    const tensor = (t: GraphTensor) => this.#tensor(t);
    if (fused(this.#spec)) {
      if (this.#spec.weightDecay > 0 && this.#spec.name !== "adamw") {
        gradient = tf.add(gradient, tf.mul(tensor(graph.read(weight)), this.#spec.weightDecay));
      }
      const resolved = (t: tf.Tensor) => binding.resolve(idOf(this.#backend, t));
      return applyFused(graph, {
        spec: this.#spec,
        weight,
        slots,
        gradient: resolved(gradient),
        scalar: (name) => this.#scalar(graph, name),
        number: (value) => resolved(tf.scalar(value)),
      });
    }
    const rule = updateRule(this.#spec);
    const names = Object.keys(rule.scalars({ learningRate: 0, iteration: 0 }));
    const scalars = Object.fromEntries(names.map((name) => [name, tensor(this.#scalar(graph, name))]));
    const before = slots.map((slot) => tensor(graph.read(slot)));
    const after = rule.apply(tensor(graph.read(weight)), gradient, before, scalars);
    const assign = (variable: Variable, value: tf.Tensor) =>
      graph.write("AssignVariableOp", assignAttributes(variable), variable, [
        binding.resolve(idOf(this.#backend, value)),
      ]);
    assign(weight, after.weight);
    after.slots.forEach((value, i) => assign(slots[i]!, value));
  }

  /** Moves BatchNorm's running statistics towards the batch's, once a batch. */
  #updateStatistics(graph: GraphRecorder): void {
    const { statistics, statisticsOrder, weights } = this.#variables;
    if (!statistics) return;
    const { binding } = this.#backend;
    const tensor = (t: GraphTensor) => this.#tensor(t);
    const [meanAll, squareAll, withinAll] = tf.split(this.#sum(graph, statistics), 3);
    // The variance of the batch: that within micro-batches, and that of their means; the latter is 0 for one.
    const varianceAll = tf.add(withinAll!, tf.maximum(tf.sub(squareAll!, tf.square(meanAll!)), 0));
    let at = 0;
    for (const { layer, channels } of statisticsOrder) {
      const move = (target: unknown, all: tf.Tensor) => {
        const variable = weights[this.#model.weights.findIndex((w) => w.variable === target)]!;
        const old = tensor(graph.read(variable));
        const value = tf.slice(all, [at], [channels]);
        const moved = tf.sub(old, tf.mul(tf.sub(old, value), 1 - layer.momentum));
        graph.write("AssignVariableOp", assignAttributes(variable), variable, [
          binding.resolve(idOf(this.#backend, moved)),
        ]);
      };
      move(layer.movingMean, meanAll!);
      move(layer.movingVariance, varianceAll);
      at += channels;
    }
    this.#zero(graph, statistics);
  }

  #zero(graph: GraphRecorder, variable: Variable): void {
    const zeros = tf.zeros(variable.shape as number[]);
    const value = this.#backend.binding.resolve(idOf(this.#backend, zeros));
    graph.write("AssignVariableOp", assignAttributes(variable), variable, [value]);
  }

  #scalar(graph: GraphRecorder, name: string): GraphTensor {
    let argument = this.#scalars.get(name);
    if (!argument) {
      argument = { kind: "argument", label: name };
      this.#scalars.set(name, argument);
    }
    return graph.input(argument, TF_FLOAT, []);
  }
}
