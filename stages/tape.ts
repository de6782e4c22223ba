/**
 * A split tape over TensorFlow.js's gradient registry: run a forward now, its backward later, and the part of
 * the backward that only the weights need (W) apart from the part that the previous stage waits for (B).
 *
 * tfjs records each op with one gradient thunk per input. B runs the thunks on the way from the outputs to the
 * inputs; a thunk that leads to a weight, directly or through ops on weights alone, is kept for W.
 * @module
 */
import { tf } from "../deps.ts";
import { engine, type TapeNode } from "./tfjs.ts";

/** A forward that can be run backward once. Owns the tensors that its backward needs. */
export interface Recording {
  readonly outputs: readonly tf.Tensor[];
  readonly nodes: readonly TapeNode[];
  /** Disposes what was saved for the backward. */
  dispose(): void;
}

/**
 * A gradient that is a sum over the batch axis of both inputs: those of several micro-batches, joined along
 * that axis, give the sum of their gradients in one call.
 */
export interface OverBatch {
  readonly inputs: readonly [x: tf.Tensor, dy: tf.Tensor];
  run(x: tf.Tensor, dy: tf.Tensor): tf.Tensor;
}

/** A thunk that knows it. */
export type GradientThunk = (() => tf.Tensor) & { overBatch?: OverBatch };

/** Makes a thunk of a gradient that is a sum over the batch axis. */
export function overBatch(x: tf.Tensor, dy: tf.Tensor, run: OverBatch["run"]): GradientThunk {
  return Object.assign(() => run(x, dy), { overBatch: { inputs: [x, dy] as const, run } });
}

/** A gradient thunk that W has still to run. */
export interface PendingGradient {
  /** The weight, or a tensor made from weights alone. */
  readonly target: tf.Tensor;
  readonly node: TapeNode;
  readonly overBatch: OverBatch | undefined;
  run(): tf.Tensor;
}

/** Runs `body`, the part of a backward that belongs to one recorded op. */
export type Around = <T>(node: TapeNode, body: () => T) => T;

/** What B leaves behind. */
export interface BackwardResult {
  /** One per input asked for; undefined where no gradient reaches it. */
  readonly inputGradients: (tf.Tensor | undefined)[];
  readonly pending: PendingGradient[];
}

/** Which tensors of a recording depend on what. */
export interface Dependence {
  /** Ids of tensors that depend on a stage input. */
  readonly activations: ReadonlySet<number>;
  /** Ids of tensors made from weights alone, the weights included, through which a gradient can flow. */
  readonly weights: ReadonlySet<number>;
  /** Ids of activations through which a gradient must flow. */
  readonly differentiable: ReadonlySet<number>;
}

/**
 * Runs `forward` with the tape on.
 *
 * @param forward returns the outputs; they are kept until the caller disposes them
 */
export function record(forward: () => tf.Tensor[]): Recording {
  const { state, startScope, endScope } = bind();
  const { activeTape, gradientDepth } = state;
  let nodes: TapeNode[] = [];
  let outputs: tf.Tensor[] = [];
  startScope("stagger.record");
  state.gradientDepth = gradientDepth + 1;
  state.activeTape = nodes;
  try {
    outputs = forward().map((t) => tf.keep(t));
  } catch (error) {
    for (const node of nodes) node.saved?.forEach((t) => t.dispose());
    throw error;
  } finally {
    nodes = state.activeTape ?? nodes;
    state.activeTape = activeTape;
    state.gradientDepth = gradientDepth;
    endScope();
  }
  return {
    outputs,
    nodes,
    dispose() {
      for (const node of nodes) node.saved?.forEach((t) => t.dispose());
      nodes.length = 0;
    },
  };
}

/**
 * Sorts a recording's tensors.
 *
 * @param inputs stage inputs, each with whether its gradient is wanted
 * @param weights ids of the trainable weights' tensors
 */
export function dependence(
  nodes: readonly TapeNode[],
  inputs: readonly { tensor: tf.Tensor; wanted: boolean }[],
  weights: Iterable<number>,
): Dependence {
  const activations = new Set(inputs.map(({ tensor }) => tensor.id));
  const differentiable = new Set(inputs.filter(({ wanted }) => wanted).map(({ tensor }) => tensor.id));
  const fromWeights = new Set(weights);
  for (const node of nodes) {
    const ids = Object.values(node.inputs).map((t) => t.id);
    const active = ids.some((id) => activations.has(id));
    const wanted = ids.some((id) => differentiable.has(id) || fromWeights.has(id));
    for (const output of node.outputs) {
      // No gradient flows through integers: indices, comparisons.
      const flows = wanted && (output.dtype === "float32" || output.dtype === "complex64");
      if (active) activations.add(output.id);
      if (flows) (active ? differentiable : fromWeights).add(output.id);
    }
  }
  return { activations, weights: fromWeights, differentiable };
}

/**
 * B: the gradients of `inputs`, given those of the recording's outputs. Call it within a tidy: the tensors that
 * it makes belong to the caller's scope. Gradients that nobody needs any more are disposed on the way.
 *
 * @param outputGradients one per output, of the output's shape; undefined counts as zero
 */
export function backward(
  recording: Recording,
  outputGradients: readonly (tf.Tensor | undefined)[],
  inputs: readonly tf.Tensor[],
  { weights, differentiable }: Dependence,
  around: Around = (_node, body) => body(),
): BackwardResult {
  const gradients = new Gradients(inputs);
  const pending: PendingGradient[] = [];
  recording.outputs.forEach((output, i) => {
    const dy = outputGradients[i];
    if (dy !== undefined && weights.has(output.id)) pending.push(pendingOutput(recording, output, dy));
    else gradients.give(output, dy);
  });
  for (const node of backwards(recording.nodes)) {
    if (!node.outputs.some((t) => differentiable.has(t.id))) continue;
    let kept = false;
    around(node, () =>
      runNode(node, gradients, (target, run, overBatch) => {
        if (weights.has(target.id)) {
          pending.push({ target, node, overBatch, run });
          kept = true;
        } else if (differentiable.has(target.id)) gradients.add(target, run());
      }));
    gradients.done(node.outputs, kept);
  }
  return { inputGradients: inputs.map((t) => gradients.get(t)), pending };
}

/**
 * W: the gradients of the weights, from what B left. Call it within a tidy.
 *
 * @param run computes one pending gradient; the default runs its thunk
 * @returns gradients by the id of the weight's tensor
 */
export function weightGradients(
  recording: Recording,
  pending: readonly PendingGradient[],
  { weights, activations }: Dependence,
  run: (gradient: PendingGradient) => tf.Tensor = (gradient) => gradient.run(),
): Map<number, tf.Tensor> {
  const gradients = new Gradients([]);
  for (const gradient of pending) gradients.add(gradient.target, run(gradient));
  for (const node of backwards(recording.nodes)) {
    if (node.outputs.some((t) => activations.has(t.id))) continue;
    runNode(node, gradients, (x, run) => {
      if (weights.has(x.id)) gradients.add(x, run());
    });
  }
  return gradients.map;
}

/** Sums of gradients by tensor. */
class Gradients {
  readonly map = new Map<number, tf.Tensor>();
  /** Ids of tensors whose gradient was handed in, or is the result: not to be disposed. */
  readonly #foreign: Set<number>;

  constructor(results: readonly tf.Tensor[]) {
    this.#foreign = new Set(results.map((t) => t.id));
  }

  get(x: tf.Tensor): tf.Tensor | undefined {
    return this.map.get(x.id);
  }

  give(x: tf.Tensor, dy: tf.Tensor | undefined): void {
    if (dy === undefined) return;
    const before = this.map.get(x.id);
    this.map.set(x.id, before === undefined ? dy : tf.add(before, dy));
    this.#foreign.add(x.id);
  }

  add(x: tf.Tensor, dy: tf.Tensor): void {
    const sum = this.map.get(x.id);
    if (sum === undefined) {
      this.map.set(x.id, dy);
      return;
    }
    this.map.set(x.id, tf.add(sum, dy));
    dy.dispose();
    if (this.#foreign.has(x.id)) this.#foreign.delete(x.id);
    else sum.dispose();
  }

  /** The node that made these tensors has run: their gradients are used up, unless something keeps them. */
  done(outputs: readonly tf.Tensor[], kept: boolean): void {
    for (const { id } of outputs) {
      if (this.#foreign.has(id)) continue;
      if (!kept) this.map.get(id)?.dispose();
      this.map.delete(id);
    }
  }
}

/** The gradient of an output that is made from weights alone. */
function pendingOutput({ nodes }: Recording, target: tf.Tensor, dy: tf.Tensor): PendingGradient {
  const made = nodes.find(({ outputs }) => outputs.some(({ id }) => id === target.id));
  const node = made ?? { id: -1, kernelName: "Variable", inputs: {}, outputs: [target] };
  return { target, node, overBatch: undefined, run: () => tf.clone(dy) };
}

/** Calls `visit` for each input of an op, with what runs its gradient: a tensor of its own at every call. */
function runNode(
  node: TapeNode,
  gradients: Gradients,
  visit: (x: tf.Tensor, run: () => tf.Tensor, overBatch: OverBatch | undefined) => void,
): void {
  const dys = node.outputs.map((t) => gradients.get(t));
  if (dys.every((dy) => dy === undefined)) return;
  if (node.gradient === undefined) {
    throw new Error(`Cannot train through op "${node.kernelName}": TensorFlow.js has no gradient for it`);
  }
  const thunks: Readonly<Record<string, GradientThunk>> = node.gradient(dys);
  // A gradient written by hand, with tf.customGrad, may give one tensor for several inputs.
  const byHand = tf.getGradient(node.kernelName) === undefined;
  for (const [key, thunk] of Object.entries(thunks)) {
    const x = node.inputs[key];
    if (x === undefined) continue;
    const run = () => {
      const dx = tf.tidy(thunk);
      return byHand || dys.includes(dx) ? tf.clone(dx) : dx;
    };
    visit(x, run, thunk.overBatch);
  }
}

function* backwards<T>(items: readonly T[]): Generator<T> {
  for (let i = items.length - 1; i >= 0; i--) yield items[i]!;
}

function bind(): Pick<ReturnType<typeof engine>, "state" | "startScope" | "endScope"> {
  const e = engine();
  if (typeof e.state?.gradientDepth !== "number" || typeof e.state.kernelDepth !== "number") {
    throw new Error(
      `Cannot record: the engine of TensorFlow.js ${tf.version.tfjs} is not the one Stagger knows (4.22)`,
    );
  }
  return {
    state: e.state,
    startScope: (name) => e.startScope(name),
    endScope: (result) => e.endScope(result),
  };
}
