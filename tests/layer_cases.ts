/**
 * Every layer of tfjs-layers that has weights or a gradient, each in a model of its own, for tests that compare
 * ways of running and cutting them.
 * @module
 */
import { tf } from "../deps.ts";
import type { DType } from "../ring/dtype.ts";

/** One layer, or a few that belong together. */
export interface LayerCase {
  readonly name: string;
  /** Of a sample. */
  readonly shape: readonly number[];
  readonly apply: (x: tf.SymbolicTensor) => tf.SymbolicTensor;
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
  /** Where TensorFlow.js by itself, on its backend `cpu`, fails or trains wrongly: tests see that it is so. */
  readonly stock?: { readonly fails: RegExp } | { readonly wrong: string };
  /** Places where a mask crosses: no stage may begin there. */
  readonly masked?: number;
  /** Words of the error that training throws, captured and eager, as in tfjs itself. */
  readonly untrainable?: RegExp;
}

const L = tf.layers;

/** One layer after the other. */
function chain(layers: () => tf.layers.Layer[]): LayerCase["apply"] {
  return (x) => layers().reduce((t, layer) => layer.apply(t) as tf.SymbolicTensor, x);
}

/** Two branches that a layer joins. */
function joined(layer: () => tf.layers.Layer): LayerCase["apply"] {
  return (x) => {
    const branches = [1, 2].map(() => L.dense({ units: 4 }).apply(x) as tf.SymbolicTensor);
    return layer().apply(branches) as tf.SymbolicTensor;
  };
}

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
  { name: "Dense", shape: [4], apply: chain(() => [L.dense({ units: 3 })]) },
  {
    name: "Dense over sequences",
    shape: [2, 4],
    apply: chain(() => [L.dense({ units: 3, activation: "relu" })]),
  },
  {
    name: "Dense without bias, of rank 4",
    shape: [2, 2, 4],
    apply: chain(() => [L.dense({ units: 3, useBias: false, activation: "sigmoid" })]),
  },
  {
    name: "Conv1D",
    shape: [6, 3],
    apply: chain(() => [L.conv1d({ filters: 2, kernelSize: 3, strides: 2, padding: "same" })]),
  },
  {
    name: "Conv1D dilated",
    stock: { fails: /dilation rates greater than 1 are not yet supported/ },
    shape: [6, 3],
    apply: chain(() => [L.conv1d({ filters: 2, kernelSize: 2, dilationRate: 2 })]),
  },
  {
    name: "Conv2D",
    shape: [5, 5, 3],
    apply: chain(() => [L.conv2d({ filters: 2, kernelSize: 3, strides: 2, activation: "relu" })]),
  },
  {
    name: "Conv2D lowered",
    shape: [3, 3, 16],
    apply: chain(() => [
      L.conv2d({ filters: 2, kernelSize: 3, padding: "same" }),
      L.conv2d({ filters: 2, kernelSize: 1 }),
    ]),
  },
  {
    name: "Conv2D dilated",
    stock: { fails: /dilation rates greater than 1 are not yet supported/ },
    shape: [6, 6, 3],
    apply: chain(() => [L.conv2d({ filters: 2, kernelSize: 2, dilationRate: [2, 3], padding: "same" })]),
  },
  {
    name: "Conv2D channels first",
    shape: [3, 5, 5],
    apply: chain(() => [L.conv2d({ filters: 2, kernelSize: 3, dataFormat: "channelsFirst" })]),
  },
  {
    name: "Conv2DTranspose",
    shape: [3, 3, 2],
    apply: chain(() => [L.conv2dTranspose({ filters: 2, kernelSize: 3, strides: 2, padding: "same" })]),
  },
  {
    name: "SeparableConv2D",
    shape: [4, 4, 2],
    apply: chain(() => [L.separableConv2d({ filters: 3, kernelSize: 3 })]),
  },
  {
    name: "SeparableConv2D dilated",
    stock: { fails: /dilation rates greater than 1 are not yet supported/ },
    shape: [6, 5, 2],
    apply: chain(() => [L.separableConv2d({ filters: 3, kernelSize: 2, dilationRate: 2 })]),
  },
  {
    name: "DepthwiseConv2D",
    shape: [5, 5, 2],
    apply: chain(() => [L.depthwiseConv2d({ kernelSize: 3, padding: "same", depthMultiplier: 2 })]),
  },
  { name: "Conv3D", shape: [3, 4, 3, 2], apply: chain(() => [L.conv3d({ filters: 2, kernelSize: 2 })]) },
  {
    name: "Conv3D dilated",
    stock: { fails: /dilation rates greater than 1 are not yet supported/ },
    shape: [4, 4, 3, 2],
    apply: chain(() => [L.conv3d({ filters: 2, kernelSize: 2, dilationRate: 2, padding: "same" })]),
  },
  {
    name: "Conv3DTranspose",
    stock: { fails: /gradient function not found for Conv3DBackpropInputV2/ },
    shape: [2, 2, 2, 2],
    apply: chain(() => [L.conv3dTranspose({ filters: 2, kernelSize: 2, strides: 2 })]),
  },
  {
    name: "ConvLSTM2D dilated",
    stock: { fails: /dilation rates greater than 1 are not yet supported/ },
    recurrent: true,
    shape: [2, 4, 4, 1],
    apply: chain(() => [
      L.convLstm2d({ filters: 1, kernelSize: 2, dilationRate: 2, returnSequences: true }) as tf.layers.Layer,
    ]),
  },
  {
    name: "ConvLSTM2D",
    recurrent: true,
    shape: [2, 3, 3, 1],
    apply: chain(() => [L.convLstm2d({ filters: 1, kernelSize: 2, padding: "same" }) as tf.layers.Layer]),
  },
  {
    name: "Embedding",
    shape: [3],
    dtype: "int32",
    apply: chain(() => [L.embedding({ inputDim: 8, outputDim: 4 }), L.globalAveragePooling1d({})]),
  },
  {
    name: "Embedding that masks an LSTM",
    recurrent: true,
    shape: [2],
    dtype: "int32",
    apply: chain(() => [L.embedding({ inputDim: 8, outputDim: 3, maskZero: true }), L.lstm({ units: 2 })]),
  },
  {
    name: "BatchNormalization",
    shape: [3, 3, 2],
    whole: true,
    apply: chain(() => [L.batchNormalization({})]),
  },
  {
    name: "BatchNormalization over axis 1",
    stock: { fails: /must match the product of shape/ },
    shape: [3, 4, 2],
    whole: true,
    apply: chain(() => [L.batchNormalization({ axis: 1 })]),
  },
  {
    name: "BatchNormalization without scale",
    stock: { fails: /undefined \(reading 'read'\)/ },
    whole: true,
    shape: [4],
    apply: chain(() => [L.batchNormalization({ scale: false, momentum: 0.5 })]),
  },
  {
    name: "BatchNormalization without center",
    stock: { fails: /undefined \(reading 'read'\)/ },
    whole: true,
    shape: [3, 4],
    apply: chain(() => [L.batchNormalization({ center: false, epsilon: 0.1 })]),
  },
  { name: "LayerNormalization", shape: [3, 4], apply: chain(() => [L.layerNormalization({})]) },
  {
    name: "SimpleRNN",
    recurrent: true,
    shape: [2, 4],
    apply: chain(() => [L.simpleRNN({ units: 3, returnSequences: true })]),
  },
  {
    name: "GRU backwards",
    recurrent: true,
    shape: [2, 4],
    apply: chain(() => [L.gru({ units: 3, returnSequences: true, goBackwards: true })]),
  },
  {
    name: "GRU",
    recurrent: true,
    shape: [3, 4],
    apply: chain(() => [L.gru({ units: 3, recurrentActivation: "sigmoid" })]),
  },
  {
    name: "LSTM with its state",
    recurrent: true,
    shape: [3, 2],
    apply: (x) => {
      const states = L.lstm({ units: 3, returnState: true }).apply(x) as tf.SymbolicTensor[];
      return L.concatenate().apply(states) as tf.SymbolicTensor;
    },
  },
  { name: "LSTM", recurrent: true, shape: [2, 4], apply: chain(() => [L.lstm({ units: 3 })]) },
  {
    name: "RNN of stacked cells",
    recurrent: true,
    shape: [2, 3],
    apply: chain(
      () => [L.rnn({ cell: [L.simpleRNNCell({ units: 3 }), L.lstmCell({ units: 2 })] }) as tf.layers.Layer],
    ),
  },
  {
    name: "Bidirectional",
    recurrent: true,
    shape: [2, 3],
    apply: chain(
      () => [L.bidirectional({ layer: L.simpleRNN({ units: 2 }) as tf.RNN, mergeMode: "concat" })],
    ),
  },
  {
    name: "Bidirectional LSTM of sequences",
    recurrent: true,
    shape: [2, 3],
    apply: chain(() => [
      L.bidirectional({ layer: L.lstm({ units: 2, returnSequences: true }) as tf.RNN, mergeMode: "sum" }),
    ]),
  },
  {
    name: "RNN of a GRU's cell",
    recurrent: true,
    shape: [2, 3],
    apply: chain(() => [L.rnn({ cell: L.gruCell({ units: 3 }) }) as tf.layers.Layer]),
  },
  {
    name: "attention by Dot",
    tolerance: 1e-6,
    shape: [3, 4],
    apply: (x) => {
      // Shares do not change with a bias of the keys.
      const [query, key, value] = [1, 2, 3].map(() =>
        L.dense({ units: 4, useBias: false }).apply(x) as tf.SymbolicTensor
      );
      const scores = L.dot({ axes: 2 }).apply([query!, key!]) as tf.SymbolicTensor;
      const shares = L.activation({ activation: "softmax" }).apply(scores) as tf.SymbolicTensor;
      return L.dot({ axes: [2, 1] }).apply([shares, value!]) as tf.SymbolicTensor;
    },
  },
  {
    name: "TimeDistributed",
    tolerance: 1e-5,
    whole: true,
    shape: [2, 3, 3, 2],
    apply: chain(() => [
      // A bias would get no gradient but rounding errors from what comes next.
      L.timeDistributed({ layer: L.conv2d({ filters: 2, kernelSize: 2, useBias: false }) }),
      L.timeDistributed({ layer: L.batchNormalization({}) }),
    ]),
  },
  {
    name: "Masking of a GRU",
    masked: 1,
    recurrent: true,
    shape: [3, 4],
    first: true,
    apply: chain(() => [L.masking({ maskValue: 0 }), L.gru({ units: 2 })]),
  },
  { name: "PReLU", shape: [3, 4], apply: chain(() => [L.prelu({ sharedAxes: [1] })]) },
];

/** Layers without weights that have a gradient. */
const WEIGHTLESS: readonly LayerCase[] = [
  { name: "Add", shape: [5], apply: joined(() => L.add()) },
  { name: "Multiply", shape: [5], apply: joined(() => L.multiply()) },
  { name: "Average", shape: [5], apply: joined(() => L.average()) },
  { name: "Maximum", shape: [5], apply: joined(() => L.maximum()) },
  { name: "Minimum", shape: [5], apply: joined(() => L.minimum()) },
  { name: "Concatenate", shape: [5], apply: joined(() => L.concatenate()) },
  { name: "Dot", shape: [5], apply: joined(() => L.dot({ axes: 1 })) },
  { name: "Dot of directions", shape: [5], apply: joined(() => L.dot({ axes: 1, normalize: true })) },
  { name: "activations by name", shape: [4], tolerance: 1e-6, apply: chain(() => [activations()]) },
  { name: "LeakyReLU", shape: [4], apply: chain(() => [L.leakyReLU({ alpha: 0.1 })]) },
  { name: "ELU", shape: [4], apply: chain(() => [L.elu()]) },
  { name: "ReLU with a ceiling", shape: [4], apply: chain(() => [L.reLU({ maxValue: 0.5 })]) },
  { name: "Softmax", shape: [4], tolerance: 1e-6, apply: chain(() => [L.softmax({})]) },
  { name: "MaxPooling1D", shape: [6, 2], apply: chain(() => [L.maxPooling1d({ poolSize: 2 })]) },
  {
    name: "AveragePooling1D",
    stock: { wrong: "whose gradient of an average counts the padding" },
    shape: [5, 2],
    apply: chain(() => [L.averagePooling1d({ poolSize: 2, padding: "same" })]),
  },
  {
    name: "MaxPooling2D",
    shape: [5, 5, 2],
    apply: chain(() => [L.maxPooling2d({ poolSize: 3, strides: 2, padding: "same" })]),
  },
  {
    name: "AveragePooling2D",
    shape: [5, 4, 2],
    apply: chain(() => [L.averagePooling2d({ poolSize: 3, strides: 1 })]),
  },
  {
    name: "MaxPooling3D",
    shape: [4, 2, 4, 1],
    apply: chain(() => [L.maxPooling3d({ poolSize: 2 }) as tf.layers.Layer]),
  },
  {
    name: "AveragePooling3D",
    shape: [4, 2, 4, 1],
    apply: chain(() => [L.averagePooling3d({ poolSize: 2 }) as tf.layers.Layer]),
  },
  { name: "GlobalMaxPooling1D", shape: [4, 2], apply: chain(() => [L.globalMaxPooling1d({})]) },
  { name: "GlobalAveragePooling1D", shape: [4, 2], apply: chain(() => [L.globalAveragePooling1d({})]) },
  { name: "GlobalMaxPooling2D", shape: [3, 3, 2], apply: chain(() => [L.globalMaxPooling2d({})]) },
  { name: "GlobalAveragePooling2D", shape: [3, 3, 2], apply: chain(() => [L.globalAveragePooling2d({})]) },
  { name: "Flatten", shape: [3, 2], apply: chain(() => [L.flatten()]) },
  {
    name: "Flatten channels first",
    shape: [3, 2, 2],
    apply: chain(() => [L.flatten({ dataFormat: "channelsFirst" })]),
  },
  { name: "Reshape", shape: [6], apply: chain(() => [L.reshape({ targetShape: [2, 3] })]) },
  { name: "Permute", shape: [2, 3], apply: chain(() => [L.permute({ dims: [2, 1] })]) },
  { name: "RepeatVector", shape: [3], apply: chain(() => [L.repeatVector({ n: 2 })]) },
  {
    name: "Cropping2D",
    shape: [4, 4, 2],
    apply: chain(() => [L.cropping2D({ cropping: [[1, 0], [0, 2]] })]),
  },
  {
    name: "UpSampling2D",
    stock: { wrong: "whose gradient takes samples for rows" },
    shape: [2, 3, 2],
    apply: chain(() => [L.upSampling2d({ size: [2, 3] })]),
  },
  {
    name: "UpSampling2D bilinear",
    stock: { fails: /gradient of input 'images' has shape/ },
    shape: [2, 3, 2],
    apply: chain(() => [L.upSampling2d({ size: [2, 2], interpolation: "bilinear" })]),
  },
  {
    name: "ZeroPadding2D",
    shape: [2, 3, 2],
    apply: chain(() => [L.zeroPadding2d({ padding: [[1, 0], [0, 2]] })]),
  },
  {
    name: "Rescaling",
    shape: [4],
    apply: chain(() => [L.rescaling({ scale: 0.5, offset: 1 }) as tf.layers.Layer]),
  },
  { name: "Dropout", shape: [5], random: true, apply: chain(() => [L.dropout({ rate: 0.5 })]) },
  {
    name: "SpatialDropout1D",
    shape: [3, 4],
    random: true,
    apply: chain(() => [L.spatialDropout1d({ rate: 0.5 })]),
  },
  { name: "GaussianNoise", shape: [4], random: true, apply: chain(() => [L.gaussianNoise({ stddev: 0.1 })]) },
  {
    name: "GaussianDropout",
    shape: [4],
    random: true,
    apply: chain(() => [L.gaussianDropout({ rate: 0.3 })]),
  },
  { name: "AlphaDropout", shape: [4], random: true, apply: chain(() => [L.alphaDropout({ rate: 0.3 })]) },
  // tfjs looks for a gradient through comparisons
  {
    name: "Masking after a trained layer",
    stock: { fails: /gradient function not found for Any/ },
    masked: 1,
    recurrent: true,
    shape: [3, 4],
    apply: chain(() => [L.masking({ maskValue: 0 }), L.simpleRNN({ units: 2 })]),
  },
  {
    name: "ThresholdedReLU",
    stock: { fails: /gradient function not found for Greater/ },
    shape: [4],
    apply: chain(() => [L.thresholdedReLU({ theta: 0.2 })]),
  },
  {
    name: "a layer of running products",
    shape: [4],
    untrainable: /op "Cumprod": TensorFlow.js has no gradient/,
    apply: chain(() => [new RunningProduct({})]),
  },
];

/** All of them. */
export const LAYERS: readonly LayerCase[] = [...WEIGHTED, ...WEIGHTLESS];

/** Layers of one input of floats, whose models may be cut: those behind a trained layer. */
export const CUTTABLE: readonly LayerCase[] = LAYERS.filter(({ dtype = "float32" }) => dtype === "float32");

/** The model of a case, between two dense layers. */
export function cuttable({ shape, apply }: LayerCase): tf.LayersModel {
  const input = tf.input({ shape: [...shape] });
  let y = apply(L.dense({ units: shape.at(-1)! }).apply(input) as tf.SymbolicTensor);
  if (y.shape.length > 2) y = L.flatten().apply(y) as tf.SymbolicTensor;
  return tf.model({ inputs: input, outputs: L.dense({ units: 2 }).apply(y) as tf.SymbolicTensor });
}

/** The model of a case: a trained layer first, so that a gradient must flow through the layer in question. */
export function modelOf({ shape, dtype, first, apply }: LayerCase): tf.LayersModel {
  const input = tf.input({ shape: [...shape], dtype: dtype as tf.DataType | undefined });
  const before = dtype === "int32" || first ? input : L.prelu({}).apply(input) as tf.SymbolicTensor;
  return tf.model({ inputs: input, outputs: apply(before) });
}
