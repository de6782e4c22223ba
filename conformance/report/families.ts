/** Families of specs, by what they are about: the rows of the table. @module */
import type { SpecResult } from "../suite/messages.ts";

/** Name and subjects of a family; a subject belongs to the first one that knows it. */
const FAMILIES: readonly (readonly [family: string, subjects: RegExp])[] = [
  ["convolution", /^(fused )?(conv\dd|conv\ddTranspose|depthwiseConv2D|separableConv2d|dilation2d)\b/i],
  ["pooling", /^(avg|max)?pool/i],
  ["matrix products", /^((fused )?matmul|matmulBatch|dot|einsum|basicLSTMCell|lstm|multiRNN)\b/],
  [
    "normalization",
    /^(batchNorm|localResponseNorm|moments|softmax|logSoftmax|norm|euclideanNorm|movingAverage)/,
  ],
  [
    "activations",
    /^(relu6?|elu|selu|prelu|leakyrelu|sigmoid|logSigmoid|softplus|tanh|step kernel|dropout|getNoiseShape)\b/,
  ],
  [
    "reductions",
    /^(all|any|arg(max|min)|max|min|mean|sum|prod|cum(sum|prod)|logSumExp|topk|bincount|denseBincount)\b/,
  ],
  [
    "gather and scatter",
    /^(gather(ND)?|scatterND|tensorScatterUpdate|sparse\w+|unsortedSegmentSum|oneHot|where\w*|booleanMaskAsync|ragged\w+|searchSorted|(lower|upper)Bound|inTopKAsync|setdiff1dAsync|unique)\b/,
  ],
  [
    "resizing and images",
    /^(resize|crop|flip|rotate|image\.|grayscale|RGBTo|threshold|nonMax|fromPixels|toPixels)/,
  ],
  ["signal and complex", /^(\dD I?R?FFT|stft|frame|hann|hamming|complex(64)?\b|complex_util)/],
  ["strings", /^(string|staticRegex)/],
  [
    "losses and optimizers",
    /(Optimizer$|^optimizer|^(absoluteDifference|computeWeightedLoss|cosineDistance|\w+Loss|meanSquaredError|\w+CrossEntropy|confusionMatrix)\b)/,
  ],
  ["random", /^(rand|MPRand|Rand|UniformRandom|multinomial|truncatedNormal)/],
  [
    "shapes and slices",
    /^(batchToSpace|spaceToBatch|depthToSpace|broadcast(Args|To)|concat|expandDims|squeeze|ensureShape|mirrorPad|pad|reverse|s?t?r?i?d?e?d?[sS]lice|split|stack|unstack|tile|transpose|meshgrid|clone|diag|eye|fill|linspace|ones|zeros|range|bandPart|gramSchmidt|qr|no input|single input|simple inputs|higher dimensional|dtypes|scalars|invalid arguments|isSliceContinous|memory test)/,
  ],
  [
    "gradients and tape",
    /^(gradients|valueAndGradients|higher-order|customGradient|tensor grad|backprop|getFiltered)/,
  ],
];

/** Those of every family, in the order of the table. */
export const FAMILY_NAMES: readonly string[] = [
  ...FAMILIES.map(([name]) => name),
  "elementwise",
  "tensors and engine",
  "without a backend",
];

const ELEMENTWISE =
  /^(abs|a?(cos|sin|tan)h?|atan2|add|addN|sub|div|mul|pow|mod|maximum|minimum|squaredDifference|bitwiseAnd|ceil|clipByValue|erf|exp|expm1|floor|floorDiv|(not)?[eE]qual|(greater|less)(Equal)?|is(Finite|Inf|NaN)|log|log1p|logical\w+|neg|reciprocal|round|rsqrt|sign|sqrt|square)\b/;

/** The family that a spec belongs to. */
export function familyOf({ subject, onBackend }: Pick<SpecResult, "subject" | "onBackend">): string {
  if (!onBackend) return "without a backend";
  const found = FAMILIES.find(([, subjects]) => subjects.test(subject));
  return found?.[0] ?? (ELEMENTWISE.test(subject) ? "elementwise" : "tensors and engine");
}
