/** `Einsum`, which the backend lacks: sums, transposes and one product of matrices. @module */
import { tf } from "../../../deps.ts";
import { register } from "./kernel.ts";

/** A tensor and the label of each of its axes; labels below the output's rank are the output's axes. */
interface Term {
  readonly x: tf.Tensor;
  readonly labels: readonly number[];
}

/** Registers it, for one tensor or two. */
export function registerEinsum(): void {
  register(tf.Einsum, (inputs, { equation }) => {
    const tensors = Object.values(inputs);
    const { decodeEinsumEquation, checkEinsumDimSizes } = tf.backend_util;
    const { allDims, summedDims, idDims } = decodeEinsumEquation(equation, tensors.length);
    checkEinsumDimSizes(allDims.length, idDims, tensors);
    const rank = allDims.length - summedDims.length;
    const [a, b] = tensors.map((x, i): Term => ({ x, labels: idDims[i]! }));
    if (b === undefined) return ordered(summed(a!, (label) => label >= rank), rank);
    return ordered(
      contracted(
        summed(a!, (label) => label >= rank && !b.labels.includes(label)),
        summed(b, (label) => label >= rank && !a!.labels.includes(label)),
        rank,
      ),
      rank,
    );
  });
}

/** Without the axes of some labels, over which it is summed. */
function summed({ x, labels }: Term, over: (label: number) => boolean): Term {
  const axes = labels.flatMap((label, axis) => over(label) ? [axis] : []);
  if (axes.length === 0) return { x, labels };
  return { x: tf.sum(x, axes), labels: labels.filter((label) => !over(label)) };
}

/** The product, `[batch, m, k]` times `[batch, k, n]`. */
function contracted(a: Term, b: Term, rank: number): Term {
  const common = a.labels.filter((label) => b.labels.includes(label));
  const batch = common.filter((label) => label < rank);
  const inner = common.filter((label) => label >= rank);
  const [ofA, ofB] = [a, b].map(({ labels }) => labels.filter((label) => !common.includes(label)));
  const size = ({ x, labels }: Term, wanted: readonly number[]) =>
    wanted.map((label) => x.shape[labels.indexOf(label)]!);
  const [n, m, k, p] = [size(a, batch), size(a, ofA!), size(a, inner), size(b, ofB!)];
  const stack = (term: Term, order: number[], rows: number[], columns: number[]) =>
    tf.reshape(arranged(term, order), [n, rows, columns].map((sizes) => tf.util.sizeFromShape(sizes)));
  const product = tf.matMul(
    stack(a, [...batch, ...ofA!, ...inner], m, k),
    stack(b, [...batch, ...inner, ...ofB!], k, p),
  );
  return { x: tf.reshape(product, [...n, ...m, ...p]), labels: [...batch, ...ofA!, ...ofB!] };
}

/** With its axes in the order of these labels. */
function arranged({ x, labels }: Term, order: readonly number[]): tf.Tensor {
  const axes = order.map((label) => labels.indexOf(label));
  return axes.every((axis, i) => axis === i) ? x : tf.transpose(x, axes);
}

/** The output: its axes in order. */
function ordered(term: Term, rank: number): tf.Tensor {
  const y = arranged(term, Array.from({ length: rank }, (_, label) => label));
  return tf.clone(y); // may be an input
}
