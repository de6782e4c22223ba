/** Both engines in one thread, each a backend of its own: wasm is the test file's to start. @module */
import { tf } from "../../deps.ts";
import { silenceBanner } from "../../stages/tfjs.ts";
import { found } from "../tensorflow/engine.ts";

/** An engine, by the name of its backend in TensorFlow.js. */
export type EngineName = "wasm" | "tensorflow";

/** Both of them. */
export const ENGINES: readonly EngineName[] = ["wasm", "tensorflow"];

silenceBanner();

/** Declares a test on an engine. It may leave no tensor, unless it makes TensorFlow.js fail, which leaves some. */
export function testOn(
  engine: EngineName,
  name: string,
  fn: () => void | Promise<void>,
  { leaks = false } = {},
): void {
  const missing = engine === "tensorflow" && found === undefined;
  Deno.test({
    name: `${name} on ${engine}${missing ? ' (no libtensorflow: "deno task setup")' : ""}`,
    ignore: missing,
    fn: async () => {
      await tf.setBackend(engine);
      const before = tf.memory().numTensors;
      tf.engine().startScope();
      try {
        await fn();
      } finally {
        tf.engine().endScope();
      }
      const left = tf.memory().numTensors - before;
      if (left !== 0 && !leaks) throw new Error(`${left} tensors are left over`);
    },
  });
}
