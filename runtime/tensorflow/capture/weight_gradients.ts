/** W in graphs: each weight's gradient goes to its accumulator. @module */
import { tf } from "../../../deps.ts";
import type { StageModel } from "../../../stages/stage_model.ts";
import {
  type BackwardResult,
  type Dependence,
  type PendingGradient,
  type Recording,
  weightGradients,
} from "../../../stages/tape.ts";
import { typeAttr } from "../binding/attributes.ts";
import { idOf, type NodeBackend } from "../binding/backend.ts";
import type { GraphRecorder } from "../binding/graph_recorder.ts";
import type { GraphTensor } from "../binding/graph_tensor.ts";
import { assignAttributes, type Variable } from "../binding/variable.ts";
import type { LayerClock } from "./layer_clock.ts";

/** A graph that accumulates, with the nodes that only its first or only its later form has. */
export interface Accumulation {
  readonly graph: GraphRecorder;
  readonly outputs: readonly GraphTensor[];
  readonly first: ReadonlySet<bigint>;
  readonly later: ReadonlySet<bigint>;
}

/** A tape that ran backward, all but the gradients of weights. */
export interface RanBackward {
  readonly recording: Recording;
  readonly back: BackwardResult;
  readonly dependent: Dependence;
  /** Where B's ops are. */
  readonly graph: GraphRecorder;
}

/** Records W for one tape. */
export class WeightGradientRecorder {
  /** Positions of weights whose gradients are added alone, to what must be zero when a step begins. */
  readonly added = new Set<number>();
  readonly #positions: ReadonlyMap<number, number>;

  constructor(
    readonly backend: NodeBackend,
    readonly model: StageModel,
    readonly accumulators: readonly (Variable | undefined)[],
    readonly clock: LayerClock | undefined,
    readonly ran: RanBackward,
  ) {
    this.#positions = new Map(model.weights.map(({ variable }, i) => [variable.val.id, i]));
  }

  /** W of one micro-batch, into a graph of its own or into B's. */
  record(graph: GraphRecorder): Accumulation {
    const { clock, added } = this;
    const { recording, back, dependent, graph: graphB } = this.ran;
    const ofB = graphB.size;
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
    for (const [position, { accumulator, weight }] of this.#accumulated()) {
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
   * it; the others are computed one by one and summed. Comes after `record`.
   */
  recordBatched(graph: GraphRecorder, k: number): Accumulation {
    const { binding } = this.backend;
    const { recording, back, dependent } = this.ran;
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
    for (const [position, { accumulator }] of this.#accumulated()) {
      const gradient = gradients.get(position);
      if (gradient && !this.added.has(position)) {
        this.#assignOrAdd(graph, accumulator, gradient, first, later);
      }
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

  *#accumulated(): Generator<[number, { accumulator: Variable; weight: StageModel["weights"][number] }]> {
    for (const [position, weight] of this.model.weights.entries()) {
      const accumulator = this.accumulators[position];
      if (accumulator) yield [position, { accumulator, weight }];
    }
  }
}

function dtypeOf(variable: Variable) {
  return [typeAttr("dtype", variable.dtype)];
}

function checkShape(gradient: GraphTensor, shape: readonly number[], layer: string): void {
  if (gradient.shape.join() !== shape.join()) {
    throw new Error(
      `Gradient of a weight of layer "${layer}" has shape [${gradient.shape}]: expected [${shape}]`,
    );
  }
}
