/** Lets TensorFlow.js save to and load from `file://` outside of Node. @module */
import { tf } from "../../deps.ts";

/** Registers tfjs-node's own handlers for `file://`, if there are none. */
export async function enableFileUrls(): Promise<void> {
  if (tf.io.getSaveHandlers("file://probe").length > 0) return;
  const { nodeFileSystemRouter } = await import(
    "npm:@tensorflow/tfjs-node-gpu@4.22.0/dist/io/file_system.js"
  );
  tf.io.registerSaveRouter(nodeFileSystemRouter);
  tf.io.registerLoadRouter(nodeFileSystemRouter);
}
