/** Numbers that tell weights apart by their bits: replicas must have the same. @module */
import { byteLengthOf } from "../../ring/dtype.ts";
import type { StageExecutor } from "../../stages/executor.ts";
import type { StageSetup } from "../protocol.ts";

/**
 * One number for each weight of the stage, in order: FNV-1a over its words (Fowler, Noll and Vo).
 */
export function checkWeights(executor: StageExecutor, { config, weights }: StageSetup): number[] {
  const memory = new SharedArrayBuffer(weights.byteLength);
  executor.storeWeights(memory);
  return config.weights.map((weight) => {
    let hash = 0x811c9dc5;
    for (const word of new Uint32Array(memory, weight.offset, byteLengthOf(weight) / 4)) {
      hash = Math.imul(hash ^ word, 0x01000193);
    }
    return hash >>> 0;
  });
}
