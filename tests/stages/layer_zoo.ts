/** A model for each common layer of tfjs-layers: `dense -> the layer -> dense`. @module */
import { tf } from "../../deps.ts";

// deno-lint-ignore no-explicit-any
type Apply = (x: any) => any;

// deno-lint-ignore no-explicit-any
const L = tf.layers as any;
const one = (make: string, config: Record<string, unknown> = {}): Apply => (x) => L[make](config).apply(x);
const two = (make: string, config: Record<string, unknown> = {}): Apply => (x) =>
  L[make](config).apply([L.dense({ units: 4 }).apply(x), L.dense({ units: 4 }).apply(x)]);

/** Shape of a sample, and the layer. */
const LAYERS: Readonly<Record<string, readonly [shape: number[], apply: Apply]>> = {
  Dense: [[5], one("dense", { units: 4, activation: "relu" })],
  "Dense of a sequence": [[3, 5], one("dense", { units: 4, useBias: false })],
  Activation: [[5], one("activation", { activation: "swish" })],
  ReLU: [[5], one("reLU", { maxValue: 1 })],
  LeakyReLU: [[5], one("leakyReLU", { alpha: 0.1 })],
  PReLU: [[5], one("prelu")],
  ELU: [[5], one("elu")],
  ThresholdedReLU: [[5], one("thresholdedReLU", { theta: 0.2 })],
  Softmax: [[5], one("softmax")],
  Conv1D: [[8, 3], one("conv1d", { filters: 4, kernelSize: 3, strides: 2, padding: "same" })],
  Conv2D: [
    [8, 8, 3],
    one("conv2d", { filters: 4, kernelSize: 3, strides: 2, padding: "same", activation: "relu" }),
  ],
  "Conv2D, channels first": [
    [3, 8, 8],
    one("conv2d", { filters: 4, kernelSize: 3, dataFormat: "channelsFirst" }),
  ],
  "Conv2D, dilated": [[8, 8, 3], one("conv2d", { filters: 4, kernelSize: 3, dilationRate: 2 })],
  Conv3D: [[5, 5, 5, 2], one("conv3d", { filters: 3, kernelSize: 2 })],
  Conv2DTranspose: [
    [4, 4, 3],
    one("conv2dTranspose", { filters: 4, kernelSize: 3, strides: 2, padding: "same" }),
  ],
  Conv3DTranspose: [[3, 3, 3, 2], one("conv3dTranspose", { filters: 2, kernelSize: 2, strides: 2 })],
  DepthwiseConv2D: [[8, 8, 3], one("depthwiseConv2d", { kernelSize: 3, depthMultiplier: 2 })],
  SeparableConv2D: [[8, 8, 3], one("separableConv2d", { filters: 4, kernelSize: 3 })],
  MaxPooling2D: [[8, 8, 3], one("maxPooling2d", { poolSize: 2 })],
  AveragePooling1D: [[8, 3], one("averagePooling1d", { poolSize: 2 })],
  AveragePooling2D: [[8, 8, 3], one("averagePooling2d", { poolSize: 3, strides: 2, padding: "same" })],
  MaxPooling3D: [[4, 4, 4, 2], one("maxPooling3d", { poolSize: 2 })],
  GlobalAveragePooling1D: [[8, 3], one("globalAveragePooling1d")],
  GlobalAveragePooling2D: [[8, 8, 3], one("globalAveragePooling2d", {})],
  GlobalMaxPooling1D: [[8, 3], one("globalMaxPooling1d")],
  GlobalMaxPooling2D: [[8, 8, 3], one("globalMaxPooling2d", {})],
  Flatten: [[4, 4, 2], one("flatten")],
  Reshape: [[4, 4, 2], one("reshape", { targetShape: [8, 4] })],
  Permute: [[4, 3, 2], one("permute", { dims: [2, 3, 1] })],
  RepeatVector: [[4], one("repeatVector", { n: 3 })],
  ZeroPadding2D: [[4, 4, 2], one("zeroPadding2d", { padding: [[1, 2], [0, 1]] })],
  Cropping2D: [[6, 6, 2], one("cropping2D", { cropping: [[1, 1], [2, 0]] })],
  UpSampling2D: [[4, 4, 2], one("upSampling2d", { size: [2, 3], interpolation: "nearest" })],
  CenterCrop: [[6, 6, 3], one("centerCrop", { height: 4, width: 3 })],
  Rescaling: [[6, 3], one("rescaling", { scale: 0.5, offset: 1 })],
  BatchNormalization: [[4, 4, 2], one("batchNormalization")],
  "BatchNormalization without scale": [[4], one("batchNormalization", { scale: false, center: false })],
  LayerNormalization: [[4, 3], one("layerNormalization")],
  Dropout: [[5], one("dropout", { rate: 0.5 })],
  SpatialDropout1D: [[5, 3], one("spatialDropout1d", { rate: 0.5 })],
  AlphaDropout: [[5], one("alphaDropout", { rate: 0.5 })],
  GaussianNoise: [[5], one("gaussianNoise", { stddev: 0.5 })],
  GaussianDropout: [[5], one("gaussianDropout", { rate: 0.5 })],
  LSTM: [[6, 3], one("lstm", { units: 4 })],
  "LSTM of sequences": [[6, 3], one("lstm", { units: 4, returnSequences: true })],
  "LSTM with its state": [[6, 3], (x) => {
    const [all, h, c] = L.lstm({ units: 4, returnSequences: true, returnState: true }).apply(x);
    return L.concatenate().apply([L.flatten().apply(all), h, c]);
  }],
  GRU: [[6, 3], one("gru", { units: 4 })],
  SimpleRNN: [[6, 3], one("simpleRNN", { units: 4 })],
  "RNN of stacked cells": [
    [6, 3],
    (x) => L.rnn({ cell: [L.lstmCell({ units: 3 }), L.gruCell({ units: 2 })] }).apply(x),
  ],
  Bidirectional: [
    [6, 3],
    (x) =>
      L.bidirectional({ layer: L.lstm({ units: 4, returnSequences: true }), mergeMode: "concat" }).apply(x),
  ],
  TimeDistributed: [[6, 3], (x) => L.timeDistributed({ layer: L.dense({ units: 4 }) }).apply(x)],
  ConvLSTM2D: [[3, 6, 6, 2], one("convLstm2d", { filters: 2, kernelSize: 3 })],
  Masking: [[6, 3], (x) => L.lstm({ units: 4 }).apply(L.masking({ maskValue: 0 }).apply(x))],
  Add: [[5], two("add")],
  Multiply: [[5], two("multiply")],
  Average: [[5], two("average")],
  Maximum: [[5], two("maximum")],
  Minimum: [[5], two("minimum")],
  Concatenate: [[5], two("concatenate")],
  Dot: [[5], two("dot", { axes: 1 })],
};

/** Names of the layers. */
export const ZOO: readonly string[] = Object.keys(LAYERS);

/** Builds the model of one. */
export function zooModel(name: string): { model: tf.LayersModel; shape: number[] } {
  const [shape, apply] = LAYERS[name]!;
  const input = tf.input({ shape });
  let y = apply(L.dense({ units: shape.at(-1) }).apply(input));
  if (y.shape.length > 2) y = L.flatten().apply(y);
  return { model: tf.model({ inputs: input, outputs: L.dense({ units: 2 }).apply(y) }), shape };
}
