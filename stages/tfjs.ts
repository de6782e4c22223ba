/**
 * The parts of TensorFlow.js 4.22 that its typings hide and Stagger builds on, in one place.
 * `tests/stages/tfjs_test.ts` guards them.
 * @module
 */
import { tf } from "../deps.ts";

/** A recorded op: its gradients are thunks, one per input, that run when they are called. */
export interface TapeNode {
  readonly id: number;
  readonly kernelName: string;
  readonly inputs: Readonly<Record<string, tf.Tensor>>;
  readonly outputs: readonly tf.Tensor[];
  readonly saved?: readonly tf.Tensor[];
  /** Gradients of the inputs; absent for an op that has none. */
  readonly gradient?: (dys: (tf.Tensor | undefined)[]) => Readonly<Record<string, () => tf.Tensor>>;
}

interface Scope {
  readonly track: tf.Tensor[];
}

/** The fields of the engine's state that switch recording on and off. */
export interface EngineState {
  activeTape: TapeNode[] | null;
  activeScope: Scope;
  gradientDepth: number;
  kernelDepth: number;
}

/** tfjs-core's engine. */
export interface Engine {
  readonly state: EngineState;
  startScope(name?: string): void;
  endScope(result?: unknown): void;
  makeTensorFromTensorInfo(info: tf.TensorInfo): tf.Tensor;
  runKernel(name: string, inputs: Record<string, tf.Tensor>, attrs?: Record<string, unknown>): unknown;
}

/** tfjs-core's engine, with what the typings hide. */
export function engine(): Engine {
  return tf.engine() as unknown as Engine;
}

/** Runs a registered kernel that returns several tensors. */
export function runKernel(
  name: string,
  inputs: Record<string, tf.Tensor>,
  attrs: Record<string, unknown> = {},
): tf.Tensor[] {
  const out = engine().runKernel(name, inputs, attrs) as tf.Tensor | tf.Tensor[];
  return Array.isArray(out) ? out : [out];
}

/** Whether the current backend has a kernel of this name. */
export function hasKernel(name: string): boolean {
  return tf.getKernel(name, tf.getBackend()) !== undefined;
}

/** A weight of a layer. */
export interface LayerVariable {
  readonly name: string;
  readonly originalName: string;
  readonly shape: number[];
  readonly dtype: tf.DataType;
  trainable: boolean;
  readonly val: tf.Variable;
  read(): tf.Tensor;
  write(value: tf.Tensor): this;
}

/** A layer, with what the typings hide. */
export interface Layer {
  readonly name: string;
  trainable: boolean;
  stateful: boolean;
  supportsMasking: boolean;
  readonly weights: LayerVariable[];
  readonly trainableWeights: LayerVariable[];
  readonly inboundNodes: LayerNode[];
  readonly losses: (() => tf.Scalar)[];
  /** Runs the layer on tensors, or notes one more use of it, of symbolic ones. */
  apply(inputs: tf.Tensor | tf.SymbolicTensor, kwargs?: Record<string, unknown>): unknown;
  call(inputs: tf.Tensor | tf.Tensor[], kwargs: Record<string, unknown>): tf.Tensor | tf.Tensor[];
  getClassName(): string;
  getConfig(): Record<string, unknown>;
}

/** One use of a layer in a model. */
export interface LayerNode {
  readonly inboundLayers: Layer[];
  readonly nodeIndices: number[];
  readonly tensorIndices: number[];
  readonly inputTensors: tf.SymbolicTensor[];
  readonly outputTensors: tf.SymbolicTensor[];
  readonly outputShapes: (number | null)[][];
  readonly callArgs?: Record<string, unknown>;
}

/** A loss or metric after tfjs-layers has resolved its name. */
export type LossFunction = (target: tf.Tensor, output: tf.Tensor) => tf.Tensor;

/** A model, with what the typings hide. */
export interface Model {
  readonly name: string;
  readonly layers: Layer[];
  readonly inputs: tf.SymbolicTensor[];
  readonly outputs: tf.SymbolicTensor[];
  readonly inputNames: string[];
  outputNames: string[];
  readonly weights: LayerVariable[];
  readonly trainableWeights: LayerVariable[];
  lossFunctions: LossFunction[];
  metricsTensors: [LossFunction, number][];
  metricsNames: string[];
  stopTraining: boolean;
  isTraining: boolean;
  built: boolean;
  optimizer: tf.Optimizer | undefined;
  call(inputs: tf.Tensor[], kwargs: Record<string, unknown>): tf.Tensor | tf.Tensor[];
  compile(args: tf.ModelCompileArgs): void;
  calculateLosses(): tf.Scalar[];
  getConfig(): Record<string, unknown>;
  getClassName(): string;
  getDedupedMetricsNames(): string[];
  standardizeUserDataXY(x: unknown, y: unknown, checkBatchAxis?: boolean, batchSize?: number): [
    tf.Tensor[],
    tf.Tensor[],
  ];
}

/**
 * A model, with what the typings hide. A `Sequential` answers with the functional model that it wraps, made on
 * the spot if its layers have an input shape and nobody has built it yet.
 */
export function internals(model: tf.LayersModel): Model {
  const sequential = model as unknown as { model?: tf.LayersModel; build(): void };
  const ready = Array.isArray(model.outputs) && model.outputs.length > 0;
  if (model instanceof tf.Sequential && !sequential.model && ready) sequential.build();
  return (sequential.model ?? model) as unknown as Model;
}

/** Builds a functional model from its config; weights start as zeros instead of being drawn. */
export function modelFromConfig(config: Record<string, unknown>): tf.LayersModel {
  const cls = tf.LayersModel as unknown as {
    fromConfig(cls: unknown, config: unknown, custom: unknown, fastWeightInit: boolean): tf.LayersModel;
  };
  return cls.fromConfig(tf.LayersModel, config, {}, true);
}

/** A layer class as the registry of tfjs-layers holds it. */
export interface LayerClass {
  readonly className: string;
  // deno-lint-ignore no-explicit-any
  new (config: any): any;
}

/** The layer class registered under `name`. */
export function layerClass(name: string): LayerClass {
  // deno-lint-ignore no-explicit-any
  const map = (tf.serialization.SerializationMap as any).getMap().classNameMap;
  const entry = map[name];
  if (entry === undefined) {
    throw new Error(
      `Cannot find layer class "${name}" in TensorFlow.js ${tf.version.tfjs}; ` +
        `name the module that defines it in the option "modules", for each worker to import`,
    );
  }
  return entry[0];
}

/**
 * Turns off tfjs's greeting, which its `cpu` backend prints on first use: in the backend, if there is one, and
 * in those that will be made.
 */
export function silenceBanner(): void {
  const silence = (backend: unknown) => {
    (backend as { firstUse?: boolean }).firstUse = false;
    return backend;
  };
  const { registry, registryFactory } = tf.engine() as unknown as {
    registry: Record<string, unknown>;
    registryFactory: Record<string, { factory: () => unknown }>;
  };
  if (registry["cpu"]) silence(registry["cpu"]);
  const entry = registryFactory["cpu"];
  if (!entry) return;
  const { factory } = entry;
  entry.factory = () => silence(factory());
}

silenceBanner();
