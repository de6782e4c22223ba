/** A worker that computes once, and again and again if it is told to go on. @module */
import { tf } from "../../deps.ts";
import { compute } from "./process_compute.ts";

const scope = self as unknown as { postMessage(sum: number): void; close(): void; onmessage: unknown };

scope.onmessage = ({ data }: MessageEvent<string>) => {
  if (data === "close") scope.close();
  else churn();
};
/** One op after the other, for ever. */
function churn(): never {
  const [x, filter] = [tf.ones<tf.Rank.R4>([2, 8, 8, 16]), tf.ones<tf.Rank.R4>([3, 3, 16, 16])];
  for (;;) tf.tidy(() => void tf.conv2d(x, filter, 1, "same"));
}

scope.postMessage(compute());
