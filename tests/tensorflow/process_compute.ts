/** Something of everything: eager ops, a captured stage, its update. @module */
import { tf } from "../../deps.ts";
import "./engine.ts";
import { host, prepare, sequential, Stages } from "./stages.ts";

const prepared = await prepare(
  sequential(
    tf.layers.conv2d({ filters: 4, kernelSize: 3, inputShape: [6, 6, 3] }),
    tf.layers.flatten(),
    tf.layers.dense({ units: 5 }),
  ),
);

/** A number that every thread must come to. */
export function compute(): number {
  const stages = new Stages(prepared, "captured", { name: "adam" });
  const [loss] = stages.step([host([4, 6, 6, 3])], [host([4, 5])]);
  stages.dispose();
  return tf.tidy(() => tf.matMul(tf.ones([8, 8]), tf.ones([8, 8])).sum().dataSync()[0]! + loss!);
}
