/** ReLU's gradient by TensorFlow's op. @module */
import { RELU_GRAD } from "../../../stages/layers/relu_gradient.ts";
import { FLOAT, register } from "./kernel.ts";

/** Registers `RELU_GRAD`. */
export function registerReluGrad(): void {
  register(RELU_GRAD, (backend, { dy, y }) => backend.executeSingleOutput("ReluGrad", [FLOAT], [dy!, y!]));
}
