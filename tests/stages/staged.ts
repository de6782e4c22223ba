/** A model cut into stages that run one after the other in this thread. @module */
import { tf } from "../../deps.ts";
import { type ModelGraph, modelGraph, refKey } from "../../stages/graph.ts";
import { allowedCuts, type Partition } from "../../stages/partition.ts";
import { type StageConfig, stageConfigs, type StageWeight, weightKey } from "../../stages/stage_config.ts";
import { StageModel } from "../../stages/stage_model.ts";
import { internals, type LayerVariable } from "../../stages/tfjs.ts";

/** Stages as workers are told to build them: through a structured clone. */
export function configsOf(graph: ModelGraph, partition: Partition): StageConfig[] {
  const layout = new Map<string, StageWeight>();
  for (const { name, weights } of graph.layers) {
    weights.forEach(({ shape, dtype, trainable }, index) => {
      layout.set(weightKey(name, index), { layer: name, index, shape, dtype, trainable, offset: 0 });
    });
  }
  return structuredClone(stageConfigs(graph, partition, layout));
}

/** Builds the stages, with the weights of the model. */
export function buildStages(model: tf.LayersModel, graph: ModelGraph, partition: Partition): StageModel[] {
  const owners = new Map(internals(model).layers.map((layer) => [layer.name, layer]));
  return configsOf(graph, partition).map((config) => {
    const stage = new StageModel(config, undefined);
    for (const { spec, variable } of stage.weights) {
      variable.val.assign(owners.get(spec.layer)!.weights[spec.index]!.val);
    }
    return stage;
  });
}

/** Runs stages one after the other on the model's inputs. @returns the model's outputs */
export function runStages(stages: readonly StageModel[], inputs: readonly tf.Tensor[]): tf.Tensor[] {
  const outputs: tf.Tensor[] = [];
  const sent = new Map<string, tf.Tensor>();
  for (const stage of stages) {
    const { config } = stage;
    const made = stage.predict(
      config.inputs.map(({ ref, modelInput }) =>
        modelInput === undefined ? sent.get(`${config.index} ${refKey(ref)}`)! : inputs[modelInput]!
      ),
    );
    config.outputs.forEach(({ ref, to }, i) => sent.set(`${to} ${refKey(ref)}`, made[i]!));
    config.modelOutputs.forEach(({ output }, i) => outputs[output] = made[config.outputs.length + i]!);
  }
  return outputs;
}

/** Draws every weight, from 0.1 to 1 (variances must be positive), so that none is what it starts as. */
export function drawWeights(weights: readonly LayerVariable[]): void {
  weights.forEach((weight, i) => {
    tf.tidy(() => void weight.write(tf.randomUniform(weight.shape, 0.1, 1, "float32", i)));
  });
}

/** The largest difference of the staged model's outputs from the whole one's, by cut. */
export function differenceByCut(model: tf.LayersModel, inputs: readonly tf.Tensor[]): Map<number, number> {
  const graph = modelGraph(model);
  drawWeights(internals(model).weights);
  const whole = [model.predict([...inputs])].flat() as tf.Tensor[];
  const found = new Map<number, number>();
  allowedCuts(graph).forEach((allowed, cut) => {
    if (!allowed) return;
    const stages = buildStages(model, graph, { cuts: [cut] });
    const off = tf.tidy(() =>
      Math.max(
        ...runStages(stages, inputs).map((y, i) => {
          if (y.shape.join() !== whole[i]!.shape.join()) return Infinity;
          return tf.max(tf.abs(tf.sub(y, whole[i]!))).dataSync()[0]!;
        }),
      )
    );
    found.set(cut, off);
    for (const stage of stages) stage.dispose();
  });
  tf.dispose(whole);
  return found;
}
