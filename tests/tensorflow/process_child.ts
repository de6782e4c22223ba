/**
 * A process that computes in its main thread and in two workers, and leaves as its argument says: "end", or, while
 * the workers compute on, "exit" or "error". What goes wrong before is an error of another text.
 * @module
 */
import { compute } from "./process_compute.ts";

const [way] = Deno.args;

function answer(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
}

const workers = [1, 2].map(() => new Worker(import.meta.resolve("./process_worker.ts"), { type: "module" }));
const sums = await Promise.all([compute(), ...workers.map(answer)]);
if (sums.some((sum) => sum !== sums[0] || !Number.isFinite(sum))) throw new Error(`Computed ${sums}`);

if (way !== "end") {
  for (const worker of workers) worker.postMessage("go on");
  await new Promise((done) => setTimeout(done, 50));
}
if (way === "exit") Deno.exit(0);
if (way === "error") throw new Error("Left on purpose");
workers[0]!.terminate();
workers[1]!.postMessage("close");
