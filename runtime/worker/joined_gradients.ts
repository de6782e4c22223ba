/** Gradients of weights of several micro-batches, in one call. @module */
import { tf } from "../../deps.ts";
import type { PendingGradient } from "../../stages/tape.ts";

/**
 * The pending gradients of several micro-batches as those of one, in one call each where they are sums over the
 * batch; as they are if the micro-batches took different ways.
 */
export function joinPending(all: readonly (readonly PendingGradient[])[]): (readonly PendingGradient[])[] {
  const [first, ...others] = all;
  const alike = others.every((pending) =>
    pending.length === first!.length &&
    pending.every(({ node, target }, i) => {
      const other = first![i]!;
      // What is made from weights may have a row for each sample: of micro-batches of several sizes, no sums.
      return node.kernelName === other.node.kernelName && target.shape.join() === other.target.shape.join();
    })
  );
  if (others.length === 0 || !alike) return [...all];
  return [
    first!.map((gradient, i) => {
      const same = [gradient, ...others.map((pending) => pending[i]!)];
      return { ...gradient, run: () => tf.tidy(() => runJoined(same)) };
    }),
  ];
}

function runJoined(same: readonly PendingGradient[]): tf.Tensor {
  const [first] = same;
  if (same.some(({ overBatch }) => !overBatch)) return tf.addN(same.map((gradient) => gradient.run()));
  const [x, dy] = [0, 1].map((side) => tf.concat(same.map(({ overBatch }) => overBatch!.inputs[side]!), 0));
  return first!.overBatch!.run(x!, dy!);
}
