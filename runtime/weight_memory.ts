/** The memory that all of a model's weights travel through, between the caller's model and the workers. @module */
import { tf } from "../deps.ts";
import { align, byteLengthOf, sizeOf } from "../ring/dtype.ts";
import type { ModelGraph } from "../stages/graph.ts";
import { type StageWeight, weightKey, type WeightLayout } from "../stages/stage_config.ts";
import { internals, type LayerVariable } from "../stages/tfjs.ts";

/** Weights of one model in shared memory. */
export class WeightMemory {
  readonly shared: SharedArrayBuffer;
  readonly layout: WeightLayout;
  readonly #variables: readonly { readonly variable: LayerVariable; readonly weight: StageWeight }[];

  /** Where each variable's values lay when they were last copied. */
  #seen: object[] = [];

  constructor(model: tf.LayersModel, graph: ModelGraph) {
    const byName = new Map(internals(model).layers.map((layer) => [layer.name, layer]));
    const layout = new Map<string, StageWeight>();
    const variables: { variable: LayerVariable; weight: StageWeight }[] = [];
    let offset = 0;
    for (const { name, weights } of graph.layers) {
      weights.forEach(({ shape, dtype, trainable }, index) => {
        const weight: StageWeight = { layer: name, index, shape, dtype, trainable, offset };
        layout.set(weightKey(name, index), weight);
        variables.push({ variable: byName.get(name)!.weights[index]!, weight });
        offset += align(byteLengthOf(weight));
      });
    }
    this.shared = new SharedArrayBuffer(Math.max(offset, 64));
    this.layout = layout;
    this.#variables = variables;
  }

  /** Whether the caller's model has got other weights since they were last copied. */
  get stale(): boolean {
    return this.#variables.some(({ variable }, i) => variable.val.dataId !== this.#seen[i]);
  }

  /** Copies the model's weights here. */
  async load(): Promise<void> {
    for (const { variable, weight } of this.#variables) {
      this.#view(weight).set(await variable.val.data() as Float32Array);
    }
    this.#remember();
  }

  /** Copies weights from here into the model. */
  store(): void {
    tf.tidy(() => {
      for (const { variable, weight } of this.#variables) {
        // Values of shared memory must not become a tensor's: a copy.
        variable.val.assign(
          tf.tensor(this.#view(weight).slice(), weight.shape as number[], weight.dtype as "float32"),
        );
      }
    });
    this.#remember();
  }

  #remember(): void {
    this.#seen = this.#variables.map(({ variable }) => variable.val.dataId);
  }

  #view(
    { offset, shape, dtype }: StageWeight,
  ): Float32Array<SharedArrayBuffer> | Int32Array<SharedArrayBuffer> {
    const size = sizeOf(shape);
    return dtype === "int32"
      ? new Int32Array(this.shared, offset, size)
      : new Float32Array(this.shared, offset, size);
  }
}
