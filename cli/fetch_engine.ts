/** Sees to it that the engine is there before a command begins. @module */
import { setup } from "../runtime/tensorflow/setup/setup.ts";
import type { Progress } from "./progress.ts";

/** Fetches libtensorflow if it is missing and wanted; without it, `auto` goes on with another engine. */
export async function fetchEngine(engine: "auto" | "tensorflow" | "wasm", progress: Progress): Promise<void> {
  if (engine === "wasm") return;
  progress.phase("looking for the engine", 0);
  try {
    await setup({
      onProgress: ({ step, item, done, total }) => {
        const share = total ? done / total : 0;
        progress.tick(share, total ? `${step} ${item}, ${Math.floor(share * 100)} %` : `${step} ${item}`);
      },
    });
  } catch (error) {
    if (engine === "tensorflow") throw error;
    progress.log((error as Error).message);
  }
}
