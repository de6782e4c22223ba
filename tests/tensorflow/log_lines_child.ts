/**
 * A process whose workers load the library at the same moment while its main thread writes lines to standard error.
 * In a worker: loads the library and tells.
 * @module
 */
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";
import { withoutLogLines } from "../../runtime/tensorflow/library/log_lines.ts";
import { openLibc } from "../../runtime/tensorflow/library/libc.ts";
import { openTensorflow } from "../../runtime/tensorflow/library/library.ts";

const scope = globalThis as unknown as { postMessage?(message: unknown): void; onmessage: unknown };
if (scope.postMessage) {
  const found = findTensorflow()!;
  scope.onmessage = () => {
    // As long as a slow machine may take, so that the workers meet in there.
    const wait = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Math.random() * 60);
    if (!Deno.env.has("TF_CPP_MIN_LOG_LEVEL")) withoutLogLines(openLibc(), found.framework, wait);
    openTensorflow(found);
    scope.postMessage!("loaded");
  };
  scope.postMessage("ready");
} else {
  const workers = [1, 2, 3].map(() => new Worker(import.meta.url, { type: "module" }));
  const said = () =>
    Promise.all(workers.map((worker) =>
      new Promise((resolve, reject) => {
        worker.onmessage = resolve;
        worker.onerror = reject;
      })
    ));
  await said();
  let line = 0;
  const timer = setInterval(() => console.error(`line ${line++}`), 1);
  const loaded = said();
  for (const worker of workers) worker.postMessage("load");
  await loaded;
  clearInterval(timer);
  console.error("end");
  console.log(line);
  Deno.exit(0);
}
