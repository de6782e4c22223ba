/**
 * Records ops as nodes of a TensorFlow graph, to be made into a function that runs as one call.
 *
 * Several recorders belong together (F, B, W of a stage): a tensor of one that another uses becomes an output of
 * the first and an input of the second. What costs nothing is not passed on but made again: constants, views
 * such as Reshape, and reads of variables.
 * @module
 */
import type { OpAttribute } from "./attributes.ts";
import { setGraphAttributes, typeAttr } from "./attributes.ts";
import type { Context } from "./context.ts";
import { cstring, cstringOnce } from "./cstring.ts";
import { TF_DOUBLE, TF_RESOURCE } from "./dtypes.ts";
import { CaptureError, type GraphTensor, type Origin, packOutputs, type Source } from "./graph_tensor.ts";
import { opDef } from "./op_def.ts";
import { TF_OUTPUT_BYTES } from "./symbols/types.ts";
import type { Variable } from "./variable.ts";

/** Outputs whose shape TensorFlow leaves open and nobody asks for: BatchNorm's scratch for its own gradient. */
const OPEN_OUTPUTS: Readonly<Record<string, number>> = { FusedBatchNormV3: 5 };

/** Ops whose output shares its input's memory: made again where they are used. */
const VIEWS = new Set(["Reshape", "ExpandDims", "Squeeze", "Identity"]);

/** One graph under construction. */
export class GraphRecorder {
  readonly graph: bigint;
  /** Placeholders, in the order of the function's inputs. */
  readonly inputs: { readonly tensor: GraphTensor; readonly source: Source; readonly replica: number }[] = [];
  /** Nodes other than placeholders. */
  readonly operations: bigint[] = [];
  /**
   * Which of several micro-batches imported tensors belong to: a function over `k` micro-batches imports the
   * same tensor once for each.
   */
  replica = 0;
  readonly #imported: Map<Source | GraphTensor, GraphTensor>[] = [];
  readonly #reads = new Map<Variable, GraphTensor>();
  readonly #access = new Map<Variable, { writer?: bigint; readers: bigint[] }>();
  readonly #effects: bigint[] = [];
  #lastStateful: bigint | undefined;
  #nodes = 0;
  /** Since the last fence, when fences are wanted. */
  #fence: { last?: bigint; since: bigint[] } | undefined;

  constructor(readonly context: Context, readonly label: string) {
    this.graph = context.tf.TF_NewGraph();
  }

  /** How many nodes there are. */
  get size(): number {
    return this.#nodes;
  }

  /** A function input. The same source gives the same input again. */
  input(source: Source, dtype: number, shape: readonly number[], open = dtype === TF_RESOURCE): GraphTensor {
    const key = source.kind === "saved" ? source.tensor : source;
    const replica = source.kind === "variable" ? 0 : this.replica;
    const imported = this.#imported[replica] ??= new Map();
    const known = imported.get(key);
    if (known) return known;
    const node = this.#begin("Placeholder", `in${this.inputs.length}`);
    setGraphAttributes(this.context, node, [typeAttr("dtype", dtype)]);
    if (!open) {
      this.context.tf.TF_SetAttrShape(
        node,
        cstring("shape"),
        BigInt64Array.from(shape, BigInt),
        shape.length,
      );
    }
    const operation = this.#finish(node, "Placeholder");
    const tensor = this.#tensor(operation, 0, { kind: "input", source }, { dtype, shape, open });
    this.inputs.push({ tensor, source, replica });
    imported.set(key, tensor);
    return tensor;
  }

  /** A constant with the contents of a `TF_Tensor`, which must stay alive while graphs are recorded. */
  constant(tensor: bigint, dtype: number): GraphTensor {
    const node = this.#begin("Const");
    this.context.tf.TF_SetAttrTensor(node, cstring("value"), tensor, this.context.status);
    this.context.check("Make a constant");
    setGraphAttributes(this.context, node, [typeAttr("dtype", dtype)]);
    return this.#tensor(this.#add(node, "Const"), 0, { kind: "constant", tensor });
  }

  /** The value of a variable, read once until it is written. */
  read(variable: Variable): GraphTensor {
    const known = this.#reads.get(variable);
    if (known) return known;
    const handle = this.resource(variable);
    const node = this.#begin("ReadVariableOp");
    this.context.tf.TF_AddInput(node, handle.output);
    this.#order(node, variable, false);
    setGraphAttributes(this.context, node, [typeAttr("dtype", variable.dtype)]);
    const operation = this.#add(node, "ReadVariableOp");
    this.#access.get(variable)!.readers.push(operation);
    const tensor = this.#tensor(operation, 0, { kind: "read", variable }, variable);
    const { tf, status } = this.context;
    const dims = BigInt64Array.from(variable.shape, BigInt);
    tf.TF_GraphSetTensorShape(this.graph, tensor.output, dims, dims.length, status); // a handle does not tell
    this.context.check("Set a variable's shape");
    this.#reads.set(variable, tensor);
    return tensor;
  }

  /** The handle of a variable, as an input. */
  resource(variable: Variable): GraphTensor {
    const source = this.#variableSource(variable);
    return this.input(source, TF_RESOURCE, []);
  }

  /** Adds an op that writes a variable, after all that used it before. @returns the node */
  write(
    op: string,
    attributes: readonly OpAttribute[],
    variable: Variable,
    values: readonly GraphTensor[],
    resources: readonly Variable[] = [],
  ): bigint {
    const node = this.#begin(op);
    const handles = [variable, ...resources].map((v) => this.resource(v));
    for (const input of [...handles, ...values.map((v) => this.import(v))]) {
      this.context.tf.TF_AddInput(node, input.output);
    }
    for (const v of [variable, ...resources]) this.#order(node, v, true);
    setGraphAttributes(this.context, node, attributes);
    const operation = this.#add(node, op);
    for (const v of [variable, ...resources]) this.#access.set(v, { writer: operation, readers: [] });
    for (const v of [variable, ...resources]) this.#reads.delete(v);
    this.#effects.push(operation);
    return operation;
  }

  /** Forgets who wrote a variable last: for two writes of which a function holds one. */
  forget(variable: Variable): void {
    this.#access.delete(variable);
  }

  /** Adds an op. @returns its outputs */
  op(
    name: string,
    attributes: readonly OpAttribute[],
    inputs: readonly GraphTensor[],
    outputCount: number,
  ): GraphTensor[] {
    const { context } = this;
    const def = opDef(context, this.graph, name);
    const own = inputs.map((input) => this.import(input));
    const node = this.#begin(name);
    let at = 0;
    const types = new Map<string, number>();
    for (const { list, type } of def.inputs) {
      if (type !== undefined && at < own.length) types.set(type, own[at]!.dtype);
      if (list === undefined) {
        context.tf.TF_AddInput(node, own[at++]!.output);
        continue;
      }
      const given = attributes.find((a) => a.name === list)?.value;
      const length = def.inputs.length === 1
        ? own.length
        : Array.isArray(given)
        ? given.length
        : Number(given);
      context.tf.TF_AddInputList(node, packOutputs(own.slice(at, at + length)), length);
      at += length;
    }
    if (def.stateful && this.#lastStateful !== undefined) {
      context.tf.TF_AddControlInput(node, this.#lastStateful);
    }
    setGraphAttributes(context, node, withTypes(attributes, types));
    const operation = this.#add(node, name);
    if (def.stateful) {
      this.#lastStateful = operation;
      this.#effects.push(operation);
    }
    const origin: Origin = VIEWS.has(name)
      ? { kind: "view", op: name, attributes, inputs: own }
      : { kind: "computed" };
    return Array.from(
      { length: outputCount },
      (_, i) => this.#tensor(operation, i, origin, OPEN_OUTPUTS[name] === i),
    );
  }

  /** This graph's own version of a tensor of another one. */
  import(tensor: GraphTensor): GraphTensor {
    if (tensor.recorder === this) return tensor;
    const imported = this.#imported[this.replica] ??= new Map();
    const known = imported.get(tensor);
    if (known) return known;
    const own = this.#import(tensor);
    imported.set(tensor, own);
    return own;
  }

  /** From now on `fence` tells the time between groups of nodes. */
  useFences(): void {
    this.#fence = { since: [] };
  }

  /** A node that reads the clock after all nodes so far and before all later ones: seconds, float64. */
  fence(): GraphTensor {
    const fence = this.#fence!;
    const node = this.#begin("Timestamp");
    for (const operation of fence.since) this.context.tf.TF_AddControlInput(node, operation);
    const operation = this.#finish(node, "Timestamp");
    this.operations.push(operation);
    this.#fence = { last: operation, since: [operation] };
    return this.#tensor(operation, 0, { kind: "computed" }, { dtype: TF_DOUBLE, shape: [] });
  }

  /** Nodes that must run though no output needs them, without `excluded`. */
  effects(excluded: ReadonlySet<bigint>): bigint[] {
    return this.#effects.filter((operation) => !excluded.has(operation));
  }

  /** Frees the graph. Functions made of it stay. */
  dispose(): void {
    this.context.tf.TF_DeleteGraph(this.graph);
  }

  #import(tensor: GraphTensor): GraphTensor {
    const { origin } = tensor;
    switch (origin.kind) {
      case "input":
        return this.input(origin.source, tensor.dtype, tensor.shape);
      case "constant":
        return this.constant(origin.tensor, tensor.dtype);
      case "read":
        return this.read(origin.variable);
      case "view":
        return this.op(origin.op, origin.attributes, origin.inputs, 1)[0]!;
      case "computed":
        return this.input({ kind: "saved", tensor }, tensor.dtype, tensor.shape, tensor.open);
    }
  }

  #variableSource(variable: Variable): Source {
    let source = variableSources.get(variable);
    if (source === undefined) {
      source = { kind: "variable", variable };
      variableSources.set(variable, source);
    }
    return source;
  }

  #begin(op: string, name = `n${this.#nodes}_${op}`): bigint {
    this.#nodes++;
    return this.context.tf.TF_NewOperation(this.graph, cstring(op), cstringOnce(name));
  }

  #add(node: bigint, op: string): bigint {
    if (this.#fence?.last !== undefined) this.context.tf.TF_AddControlInput(node, this.#fence.last);
    const operation = this.#finish(node, op);
    this.#fence?.since.push(operation);
    this.operations.push(operation);
    return operation;
  }

  #finish(node: bigint, op: string): bigint {
    const operation = this.context.tf.TF_FinishOperation(node, this.context.status);
    this.context.check(`Capture op ${op} in ${this.label}`);
    return operation;
  }

  /** Orders a node after earlier accesses to a variable: a write after all, a read after the last write. */
  #order(node: bigint, variable: Variable, write: boolean): void {
    const access = this.#access.get(variable) ?? { readers: [] };
    this.#access.set(variable, access);
    const before = write ? access.readers : [];
    for (const operation of access.writer === undefined ? before : [...before, access.writer]) {
      this.context.tf.TF_AddControlInput(node, operation);
    }
  }

  #tensor(
    operation: bigint,
    index: number,
    origin: Origin,
    known: boolean | { dtype: number; shape: readonly number[]; open?: boolean } = false,
  ): GraphTensor {
    const output = new Uint8Array(TF_OUTPUT_BYTES);
    new BigUint64Array(output.buffer)[0] = operation;
    new Int32Array(output.buffer)[2] = index;
    const { dtype, shape, open } = typeof known === "object" ? known : this.#infer(output, known);
    const position = this.#nodes - 1;
    return { recorder: this, operation, output, shape, dtype, open: open ?? false, position, origin };
  }

  #infer(
    output: Uint8Array<ArrayBuffer>,
    mayBeOpen: boolean,
  ): { dtype: number; shape: number[]; open: boolean } {
    const { tf, status } = this.context;
    const dtype = tf.TF_OperationOutputType(output);
    const rank = tf.TF_GraphGetTensorNumDims(this.graph, output, status);
    this.context.check("Infer a shape");
    const dims = new BigInt64Array(Math.max(rank, 0));
    if (rank > 0) {
      tf.TF_GraphGetTensorShape(this.graph, output, dims, rank, status);
      this.context.check("Infer a shape");
    }
    const open = rank < 0 || dims.some((dim) => dim < 0n);
    if (open && !mayBeOpen) throw new CaptureError("makes a tensor whose shape depends on values");
    return { dtype, shape: open ? [0] : Array.from(dims, Number), open };
  }
}

/**
 * Attributes with the dtypes that the inputs have, as an eager op takes them: some of tfjs-node's kernels name that of
 * a tensor before they cast it.
 */
function withTypes(attributes: readonly OpAttribute[], types: ReadonlyMap<string, number>): OpAttribute[] {
  return attributes.map((attribute) => {
    const dtype = types.get(attribute.name);
    return dtype === undefined ? attribute : { ...attribute, value: dtype };
  });
}

const variableSources = new WeakMap<Variable, Source>();
