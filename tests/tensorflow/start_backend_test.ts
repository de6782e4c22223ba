import assert from "node:assert/strict";
import { tf } from "../../deps.ts";
import { BACKEND } from "../../runtime/tensorflow/binding/backend.ts";
import { Context } from "../../runtime/tensorflow/binding/context.ts";
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { startBackend } from "../../runtime/tensorflow/start_backend.ts";

const found = findTensorflow();

Deno.test({
  name: "the engine tensorflow fails where TensorFlow.js goes on with another backend (needs libtensorflow)",
  ignore: found === undefined,
  fn: async () => {
    await tf.setBackend("cpu");
    const warn = console.warn;
    console.warn = () => {}; // TensorFlow.js tells why
    tf.registerBackend(BACKEND, () => {
      throw new Error("no memory");
    });
    try {
      const context = new Context({ libraries: found!, device: "cpu" });
      await assert.rejects(
        startBackend(context),
        /^Error: Cannot start engine "tensorflow": TensorFlow\.js cannot use its backend "tensorflow"$/,
      );
    } finally {
      console.warn = warn;
      tf.removeBackend(BACKEND);
    }
  },
});
