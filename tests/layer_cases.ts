/** Layers of tfjs-layers, each in a model of its own, for tests that compare ways of running them. @module */
import { tf } from "../../deps.ts";
import type { DType } from "../../ring/dtype.ts";

/** One layer, or a few that belong together. */
export interface LayerCase {
  readonly name: string;
  /** Of a sample. */
  readonly shape: readonly number[];
  readonly layers: () => tf.layers.Layer[];
  /** Of the input; integers stand for words. Default: float32. */
  readonly dtype?: DType;
  /** Whether no trained layer may come before: the gradient does not flow through. */
  readonly first?: boolean;
  /** Difference to eager that is allowed: TensorFlow rounds the op otherwise within a function. Default: 0. */
  readonly tolerance?: number;
  /** Whether it goes through many steps: capturing it takes long. */
  readonly recurrent?: boolean;
  /** Whether it draws random numbers: plain tfjs draws others. */
  readonly random?: boolean;
  /** Whether it looks at all samples at once: then a batch is not the sum of its micro-batches. */
  readonly whole?: boolean;
  /** Whether plain tfjs fails to train it. */
  readonly failsPlainly?: boolean;
  /** Words of the error that training throws, captured and eager, as in tfjs itself. */
  readonly untrainable?: RegExp;
}

const L = tf.layers;

const ACTIVATIONS = [
  "elu",
  "relu",
  "relu6",
  "linear",
  "sigmoid",
  "hardSigmoid",
  "softplus",
  "softsign",
  "tanh",
  "softmax",
  "logSoftmax",
  "swish",
  "mish",
  "selu",
  "gelu",
  "gelu_new",
];

/** Every activation of one input, side by side. */
function activations(): tf.layers.Layer {
  const input = tf.input({ shape: [4] });
  const made = ACTIVATIONS.map((name) =>
    L.activation({ activation: name as "relu" }).apply(input) as tf.SymbolicTensor
  );
  const outputs = L.concatenate().apply(made) as tf.SymbolicTensor;
  return tf.model({ inputs: input, outputs }) as unknown as tf.layers.Layer;
}

/** Computes what TensorFlow.js has no gradient for. */
class RunningProduct extends tf.layers.Layer {
  static readonly className = "RunningProduct";

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    return tf.cumprod(Array.isArray(inputs) ? inputs[0]! : inputs, 1);
  }
}
tf.serialization.registerClass(RunningProduct);

/** Layers with weights. */
export const WEIGHTED: readonly LayerCase[] = [
  { name: "Dense", shape: [4], layers: () => [L.dense({ units: 3 })] },
  { name: "Dense over sequences", shape: [2, 4], layers: () => [L.dense({ units: 3, activation: "relu" })] },
  {
    name: "Dense without bias, of rank 4",
    shape: [2, 2, 4],
    layers: () => [L.dense({ units: 3, useBias: false, activation: "sigmoid" })],
  },
  {
    name: "Conv1D",
    shape: [6, 3],
    layers: () => [L.conv1d({ filters: 2, kernelSize: 3, strides: 2, padding: "same" })],
  },
  {
    name: "Conv1D dilated",
    shape: [6, 3],
    layers: () => [L.conv1d({ filters: 2, kernelSize: 2, dilationRate: 2 })],
  },
  {
    name: "Conv2D",
    shape: [5, 5, 3],
    layers: () => [L.conv2d({ filters: 2, kernelSize: 3, strides: 2, activation: "relu" })],
  },
  {
    name: "Conv2D lowered",
    shape: [3, 3, 16],
    layers: () => [
      L.conv2d({ filters: 2, kernelSize: 3, padding: "same" }),
      L.conv2d({ filters: 2, kernelSize: 1 }),
    ],
  },
  {
    name: "Conv2D channels first",
    shape: [3, 5, 5],
    layers: () => [L.conv2d({ filters: 2, kernelSize: 3, dataFormat: "channelsFirst" })],
  },
  {
    name: "Conv2DTranspose",
    shape: [3, 3, 2],
    layers: () => [L.conv2dTranspose({ filters: 2, kernelSize: 3, strides: 2, padding: "same" })],
  },
  {
    name: "SeparableConv2D",
    shape: [4, 4, 2],
    layers: () => [L.separableConv2d({ filters: 3, kernelSize: 3 })],
  },
  {
    name: "DepthwiseConv2D",
    shape: [5, 5, 2],
    layers: () => [L.depthwiseConv2d({ kernelSize: 3, padding: "same", depthMultiplier: 2 })],
  },
  { name: "Conv3D", shape: [3, 4, 3, 2], layers: () => [L.conv3d({ filters: 2, kernelSize: 2 })] },
  {
    name: "ConvLSTM2D",
    recurrent: true,
    shape: [2, 3, 3, 1],
    layers: () => [L.convLstm2d({ filters: 1, kernelSize: 2, padding: "same" }) as tf.layers.Layer],
  },
  {
    name: "Embedding",
    shape: [3],
    dtype: "int32",
    layers: () => [L.embedding({ inputDim: 8, outputDim: 4 }), L.globalAveragePooling1d({})],
  },
  {
    name: "Embedding that masks an LSTM",
    recurrent: true,
    shape: [2],
    dtype: "int32",
    layers: () => [L.embedding({ inputDim: 8, outputDim: 3, maskZero: true }), L.lstm({ units: 2 })],
  },
  { name: "BatchNormalization", shape: [3, 3, 2], whole: true, layers: () => [L.batchNormalization({})] },
  {
    name: "BatchNormalization over axis 1",
    shape: [3, 4, 2],
    whole: true,
    failsPlainly: true,
    layers: () => [L.batchNormalization({ axis: 1 })],
  },
  {
    name: "BatchNormalization without scale",
    whole: true,
    failsPlainly: true,
    shape: [4],
    layers: () => [L.batchNormalization({ scale: false, momentum: 0.5 })],
  },
  {
    name: "BatchNormalization without center",
    whole: true,
    failsPlainly: true,
    shape: [3, 4],
    layers: () => [L.batchNormalization({ center: false, epsilon: 0.1 })],
  },
  { name: "LayerNormalization", shape: [3, 4], layers: () => [L.layerNormalization({})] },
  {
    name: "SimpleRNN",
    recurrent: true,
    shape: [2, 4],
    layers: () => [L.simpleRNN({ units: 3, returnSequences: true })],
  },
  {
    name: "GRU backwards",
    recurrent: true,
    shape: [2, 4],
    layers: () => [L.gru({ units: 3, returnSequences: true, goBackwards: true })],
  },
  { name: "LSTM", recurrent: true, shape: [2, 4], layers: () => [L.lstm({ units: 3 })] },
  {
    name: "RNN of stacked cells",
    recurrent: true,
    shape: [2, 3],
    layers:
      () => [L.rnn({ cell: [L.simpleRNNCell({ units: 3 }), L.lstmCell({ units: 2 })] }) as tf.layers.Layer],
  },
  {
    name: "Bidirectional",
    recurrent: true,
    shape: [2, 3],
    layers: () => [L.bidirectional({ layer: L.simpleRNN({ units: 2 }) as tf.RNN, mergeMode: "concat" })],
  },
  {
    name: "TimeDistributed",
    whole: true,
    shape: [2, 3, 3, 2],
    layers: () => [
      L.timeDistributed({ layer: L.conv2d({ filters: 2, kernelSize: 2 }) }),
      L.timeDistributed({ layer: L.batchNormalization({}) }),
    ],
  },
  {
    name: "Masking of a GRU",
    recurrent: true,
    shape: [3, 4],
    first: true,
    layers: () => [L.masking({ maskValue: 0 }), L.gru({ units: 2 })],
  },
  { name: "PReLU", shape: [3, 4], layers: () => [L.prelu({ sharedAxes: [1] })] },
];

/** Layers without weights that have a gradient. */
const WEIGHTLESS: readonly LayerCase[] = [
  { name: "activations by name", shape: [4], tolerance: 1e-6, layers: () => [activations()] },
  { name: "LeakyReLU", shape: [4], layers: () => [L.leakyReLU({ alpha: 0.1 })] },
  { name: "ELU", shape: [4], layers: () => [L.elu()] },
  { name: "ReLU with a ceiling", shape: [4], layers: () => [L.reLU({ maxValue: 0.5 })] },
  { name: "Softmax", shape: [4], tolerance: 1e-6, layers: () => [L.softmax({})] },
  { name: "MaxPooling1D", shape: [6, 2], layers: () => [L.maxPooling1d({ poolSize: 2 })] },
  {
    name: "AveragePooling1D",
    shape: [5, 2],
    layers: () => [L.averagePooling1d({ poolSize: 2, padding: "same" })],
  },
  {
    name: "MaxPooling2D",
    shape: [5, 5, 2],
    layers: () => [L.maxPooling2d({ poolSize: 3, strides: 2, padding: "same" })],
  },
  {
    name: "AveragePooling2D",
    shape: [5, 4, 2],
    layers: () => [L.averagePooling2d({ poolSize: 3, strides: 1 })],
  },
  {
    name: "MaxPooling3D",
    shape: [4, 2, 4, 1],
    layers: () => [L.maxPooling3d({ poolSize: 2 }) as tf.layers.Layer],
  },
  {
    name: "AveragePooling3D",
    shape: [4, 2, 4, 1],
    layers: () => [L.averagePooling3d({ poolSize: 2 }) as tf.layers.Layer],
  },
  { name: "GlobalMaxPooling1D", shape: [4, 2], layers: () => [L.globalMaxPooling1d({})] },
  { name: "GlobalAveragePooling1D", shape: [4, 2], layers: () => [L.globalAveragePooling1d({})] },
  { name: "GlobalMaxPooling2D", shape: [3, 3, 2], layers: () => [L.globalMaxPooling2d({})] },
  { name: "GlobalAveragePooling2D", shape: [3, 3, 2], layers: () => [L.globalAveragePooling2d({})] },
  { name: "Flatten", shape: [3, 2], layers: () => [L.flatten()] },
  {
    name: "Flatten channels first",
    shape: [3, 2, 2],
    layers: () => [L.flatten({ dataFormat: "channelsFirst" })],
  },
  { name: "Reshape", shape: [6], layers: () => [L.reshape({ targetShape: [2, 3] })] },
  { name: "Permute", shape: [2, 3], layers: () => [L.permute({ dims: [2, 1] })] },
  { name: "RepeatVector", shape: [3], layers: () => [L.repeatVector({ n: 2 })] },
  { name: "Cropping2D", shape: [4, 4, 2], layers: () => [L.cropping2D({ cropping: [[1, 0], [0, 2]] })] },
  { name: "UpSampling2D", shape: [2, 3, 2], layers: () => [L.upSampling2d({ size: [2, 3] })] },
  {
    name: "UpSampling2D bilinear",
    shape: [2, 3, 2],
    layers: () => [L.upSampling2d({ size: [2, 2], interpolation: "bilinear" })],
  },
  { name: "ZeroPadding2D", shape: [2, 3, 2], layers: () => [L.zeroPadding2d({ padding: [[1, 0], [0, 2]] })] },
  {
    name: "Rescaling",
    shape: [4],
    layers: () => [L.rescaling({ scale: 0.5, offset: 1 }) as tf.layers.Layer],
  },
  { name: "Dropout", shape: [5], random: true, layers: () => [L.dropout({ rate: 0.5 })] },
  {
    name: "SpatialDropout1D",
    shape: [3, 4],
    random: true,
    layers: () => [L.spatialDropout1d({ rate: 0.5 })],
  },
  { name: "GaussianNoise", shape: [4], random: true, layers: () => [L.gaussianNoise({ stddev: 0.1 })] },
  { name: "GaussianDropout", shape: [4], random: true, layers: () => [L.gaussianDropout({ rate: 0.3 })] },
  { name: "AlphaDropout", shape: [4], random: true, layers: () => [L.alphaDropout({ rate: 0.3 })] },
  // tfjs looks for a gradient through comparisons
  {
    name: "Masking after a trained layer",
    recurrent: true,
    shape: [3, 4],
    failsPlainly: true,
    layers: () => [L.masking({ maskValue: 0 }), L.simpleRNN({ units: 2 })],
  },
  {
    name: "ThresholdedReLU",
    shape: [4],
    failsPlainly: true,
    layers: () => [L.thresholdedReLU({ theta: 0.2 })],
  },
  {
    name: "Conv3DTranspose",
    shape: [2, 2, 2, 2],
    failsPlainly: true,
    layers: () => [L.conv3dTranspose({ filters: 2, kernelSize: 2, strides: 2 })],
  },
  {
    name: "a layer of running products",
    shape: [4],
    untrainable: /op "Cumprod": TensorFlow.js has no gradient/,
    layers: () => [new RunningProduct({})],
  },
];

/** All of them. */
export const LAYERS: readonly LayerCase[] = [...WEIGHTED, ...WEIGHTLESS];

/** The model of a case: a trained layer first, so that a gradient must flow through the layer in question. */
export function modelOf({ shape, dtype, first, layers }: LayerCase): tf.LayersModel {
  const input = tf.input({ shape: [...shape], dtype: dtype as tf.DataType | undefined });
  const before = dtype === "int32" || first ? [] : [L.prelu({})];
  const output = [...before, ...layers()].reduce((t, layer) => layer.apply(t) as tf.SymbolicTensor, input);
  return tf.model({ inputs: input, outputs: output });
}
