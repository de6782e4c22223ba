/** What the module exports. @module */
export { batchNorm, batchNormGradient } from "./batch_norm";
export { compare, extreme, select, truthToFloat } from "./compare";
export { depthwiseFilterGradient } from "./depthwise_filter_gradient";
export { maxPoolGradient } from "./max_pool_gradient";
export { multiply, workspaceBytes } from "./multiply";
export { philoxUniform } from "./philox";
export { reluGradient } from "./relu_gradient";
export { bilinearGradient, nearestGradient } from "./resize_gradient";
export { addRows, copyRows, gatherRows } from "./rows";
export { tanh } from "./tanh";
export { adamUpdate, momentumUpdate } from "./update";
