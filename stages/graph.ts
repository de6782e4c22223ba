/**
 * A `tf.LayersModel` as a graph of layers in the order in which it may be cut, and what each layer needs to be
 * built again elsewhere.
 * @module
 */
import { tf } from "../deps.ts";
import type { DType, TensorSpec } from "../ring/dtype.ts";
import { internals, type Layer, type LayerNode, type Model } from "./tfjs.ts";

/** A tensor of the model, by the layer that makes it, which use of that layer, and which of its outputs. */
export interface TensorRef {
  readonly layer: string;
  readonly node: number;
  readonly tensor: number;
}

/** One use of a layer. */
export interface GraphNode {
  readonly inputs: readonly TensorRef[];
  /** Shapes with `null` where the model leaves a dimension open. */
  readonly outputs: readonly { shape: readonly (number | null)[]; dtype: DType }[];
  readonly callArgs: Record<string, unknown>;
}

/** A layer, with all of its uses. */
export interface GraphLayer {
  /** Position in the model, whatever it is named: names count up within a process. */
  readonly index: number;
  readonly name: string;
  readonly className: string;
  readonly config: Record<string, unknown>;
  readonly nodes: readonly GraphNode[];
  readonly weights: readonly (TensorSpec & { name: string; trainable: boolean })[];
  /** Whether this layer hands a mask on with its outputs. */
  readonly masks: boolean;
}

/** The model. `layers` is a topological order without the input layers; cuts are positions in it. */
export interface ModelGraph {
  readonly name: string;
  readonly layers: readonly GraphLayer[];
  readonly inputs: readonly {
    ref: TensorRef;
    name: string;
    shape: readonly (number | null)[];
    dtype: DType;
  }[];
  readonly outputs: readonly { ref: TensorRef; name: string; shape: readonly (number | null)[] }[];
}

/** A key for maps. */
export function refKey(ref: TensorRef): string {
  return `${ref.layer}:${ref.node}:${ref.tensor}`;
}

/**
 * Reads the graph off a model.
 *
 * @throws {TypeError} if the model has no input shape yet, or a weight belongs to two layers
 */
export function modelGraph(model: tf.LayersModel): ModelGraph {
  const inner = internals(model);
  if (!inner.inputs?.length || !inner.outputs?.length) {
    throw new TypeError(
      `Cannot distribute model "${model.name}": it has no input shape; give its first layer inputShape, or build it`,
    );
  }
  const nodes = usedNodes(inner);
  const position = new Map<Layer, Map<number, number>>(); // layer -> its own node index -> index among those used
  for (const [layer, used] of nodes) position.set(layer, new Map(used.map((node, i) => [node, i])));
  const ref = (layer: Layer, node: number, tensor: number): TensorRef => ({
    layer: layer.name,
    node: position.get(layer)!.get(node)!,
    tensor,
  });
  const masked = new Set<string>();
  const kept = inner.layers.filter((layer) => layer.getClassName() !== "InputLayer");
  refuseSharedWeights(inner.name, kept);
  refuseStateful(kept);
  refuseCausal(kept);
  refuseEmpty(kept, nodes);
  const layers = kept.map((layer, index) => graphLayer(index, layer, nodes.get(layer)!, ref, masked));
  return {
    name: inner.name,
    layers,
    inputs: inner.inputs.map((t, i) => ({
      ref: symbolicRef(t, ref),
      name: inner.inputNames[i]!,
      shape: t.shape,
      dtype: t.dtype as DType,
    })),
    outputs: inner.outputs.map((t, i) => ({
      ref: symbolicRef(t, ref),
      name: inner.outputNames[i]!,
      shape: t.shape,
    })),
  };
}

/** Shapes of all tensors of the model for inputs of these shapes, by `refKey`. */
export function inferShapes(
  model: tf.LayersModel,
  graph: ModelGraph,
  inputShapes: readonly (readonly number[])[],
): Map<string, number[]> {
  const layers = new Map(internals(model).layers.map((layer) => [layer.name, layer]));
  const shapes = new Map<string, number[]>();
  graph.inputs.forEach(({ ref }, i) => shapes.set(refKey(ref), [...inputShapes[i]!]));
  let open = graph.layers.flatMap((layer) => layer.nodes.map((node, i) => ({ layer: layer.name, node, i })));
  while (open.length > 0) {
    const later: typeof open = [];
    for (const use of open) {
      const inputs = use.node.inputs.map((r) => shapes.get(refKey(r)));
      if (inputs.some((shape) => shape === undefined)) {
        later.push(use);
        continue;
      }
      const layer = layers.get(use.layer) as unknown as {
        computeOutputShape(shape: unknown): number[] | number[][];
      };
      const given = inputs.map((shape) => [...shape!]); // CenterCrop writes into what it is given
      const out = layer.computeOutputShape(given.length === 1 ? given[0] : given);
      const list = (Array.isArray(out[0]) ? out : [out]) as number[][];
      list.forEach((shape, tensor) => shapes.set(refKey({ layer: use.layer, node: use.i, tensor }), shape));
    }
    if (later.length === open.length) {
      throw new Error(`Cannot infer the shapes of layer "${later[0]!.layer}"`);
    }
    open = later;
  }
  return shapes;
}

/** The nodes of each layer that lie on the way to the model's outputs: a layer may have others elsewhere. */
function usedNodes(model: Model): Map<Layer, number[]> {
  const used = new Map<Layer, Set<number>>();
  const visit = (layer: Layer, index: number) => {
    const seen = used.get(layer) ?? new Set();
    used.set(layer, seen);
    if (seen.has(index)) return;
    seen.add(index);
    const node = layer.inboundNodes[index]!;
    node.inboundLayers.forEach((inbound, i) => visit(inbound, node.nodeIndices[i]!));
  };
  for (const t of [...model.outputs, ...model.inputs]) {
    const { sourceLayer, nodeIndex } = t as unknown as { sourceLayer: Layer; nodeIndex: number };
    visit(sourceLayer, nodeIndex);
  }
  return new Map([...used].map(([layer, set]) => [layer, [...set].sort((a, b) => a - b)]));
}

function graphLayer(
  index: number,
  layer: Layer,
  used: readonly number[],
  ref: (layer: Layer, node: number, tensor: number) => TensorRef,
  masked: Set<string>,
): GraphLayer {
  const config = layer.getConfig();
  const nodes = used.map((index): GraphNode => {
    const node: LayerNode = layer.inboundNodes[index]!;
    return {
      inputs: node.inboundLayers.map((inbound, i) =>
        ref(inbound, node.nodeIndices[i]!, node.tensorIndices[i]!)
      ),
      outputs: node.outputTensors.map((t) => ({ shape: t.shape, dtype: t.dtype as DType })),
      callArgs: plainArgs(node.callArgs ?? {}),
    };
  });
  const begins = layer.getClassName() === "Masking" || config["maskZero"] === true;
  const { returnSequences } = layer as { returnSequences?: boolean }; // a wrapper's config leaves it out
  const handsOn = layer.supportsMasking && returnSequences !== false &&
    nodes.some((node) => node.inputs.some((input) => masked.has(input.layer)));
  if (begins || handsOn) masked.add(layer.name);
  const trained = new Set(layer.trainableWeights); // a nested model knows which of its own are frozen
  return {
    index,
    name: layer.name,
    className: layer.getClassName(),
    config,
    nodes,
    weights: layer.weights.map((w) => ({
      name: w.originalName,
      shape: w.shape,
      dtype: w.dtype as DType,
      trainable: trained.has(w),
    })),
    masks: begins || handsOn,
  };
}

/** Arguments without tensors, such as a decoder's initial state: those are inputs after the first. */
function plainArgs(args: Record<string, unknown>): Record<string, unknown> {
  const plain = (value: unknown) =>
    !(Array.isArray(value) ? value : [value]).some((v) => v instanceof tf.SymbolicTensor);
  return Object.fromEntries(Object.entries(args).filter(([, value]) => plain(value)));
}

/** TensorFlow.js knows the padding and fails in the first step. */
function refuseCausal(layers: readonly Layer[]): void {
  const causal = layers.find((layer) => layer.getConfig().padding === "causal");
  if (causal === undefined) return;
  throw new TypeError(
    `Cannot distribute layer "${causal.name}": TensorFlow.js has no padding "causal"; ` +
      `pad its input before it, and use padding "valid"`,
  );
}

/** A window larger than what it goes over leaves nothing. */
function refuseEmpty(layers: readonly Layer[], nodes: ReadonlyMap<Layer, number[]>): void {
  for (const layer of layers) {
    for (const index of nodes.get(layer)!) {
      for (const { shape } of layer.inboundNodes[index]!.outputTensors) {
        if (shape.every((dim) => dim === null || dim > 0)) continue;
        const text = shape.map((dim) => dim ?? "samples").join(", ");
        throw new RangeError(
          `Cannot distribute layer "${layer.name}": its output has shape [${text}], expected sizes above 0; ` +
            `give it a smaller window or a larger input`,
        );
      }
    }
  }
}

/** @throws {TypeError} for a layer whose state goes from batch to batch: micro-batches are batches of their own */
function refuseStateful(layers: readonly Layer[]): void {
  const stateful = layers.find((layer) => layer.stateful);
  if (stateful === undefined) return;
  throw new TypeError(
    `Cannot distribute layer "${stateful.name}": it is stateful, and a batch is cut into micro-batches; ` +
      `build it with stateful: false`,
  );
}

/** @throws {TypeError} if a weight belongs to two layers: each would train its own copy */
function refuseSharedWeights(model: string, layers: readonly Layer[]): void {
  const owners = new Map<number, Layer>();
  for (const layer of layers) {
    for (const { val, originalName } of layer.weights) {
      const owner = owners.get(val.id) ?? layer;
      owners.set(val.id, owner);
      if (owner !== layer) {
        throw new TypeError(
          `Cannot distribute model "${model}": layers "${owner.name}" and "${layer.name}" share weight ` +
            `"${originalName}"; use the layer that owns it directly, in both places`,
        );
      }
    }
  }
}

function symbolicRef(
  t: tf.SymbolicTensor,
  ref: (layer: Layer, node: number, tensor: number) => TensorRef,
): TensorRef {
  const { sourceLayer, nodeIndex, tensorIndex } = t as unknown as {
    sourceLayer: Layer;
    nodeIndex: number;
    tensorIndex: number;
  };
  return ref(sourceLayer, nodeIndex, tensorIndex);
}
