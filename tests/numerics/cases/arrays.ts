/** Cases of ops that rearrange, reduce or multiply arrays, by kernel. @module */
import { tf } from "../../../deps.ts";
import { apart, between, type GradientCase, type Input, plain } from "../differences.ts";
import type { Cases } from "./cases.ts";

type Op = GradientCase["op"];

function each(
  shape: number[],
  ops: Record<string, Op>,
  make: (shape: number[]) => Input = plain,
): GradientCase[] {
  return Object.entries(ops).map(([name, op]) => ({ name, inputs: [make(shape)], op }));
}

const AXES: readonly (number | number[] | undefined)[] = [undefined, 0, 1, -1, [0, 1], [0, 2], [1, 2], [
  -2,
  0,
]];

/** Over all kinds of axes. */
function reduction(
  op: (x: tf.Tensor, axis: number | number[] | undefined, keepDims: boolean) => tf.Tensor,
  make: (shape: number[]) => Input,
): GradientCase[] {
  return AXES.flatMap((axis) =>
    [false, true].map((keep) => ({
      name: `over ${axis ?? "all"}${keep ? ", dimensions kept" : ""}`,
      inputs: [make([3, 2, 4])],
      op: (x: tf.Tensor) => op(x, axis, keep),
    }))
  ) as GradientCase[];
}

/** Ids are numbers of segments. */
function segments(ids: number[], count: number, shape: number[]): GradientCase {
  return {
    name: `[${ids}] of ${count}`,
    inputs: [plain(shape)],
    op: (x) => tf.unsortedSegmentSum(x!, tf.tensor1d(ids, "int32"), count),
  };
}

function gather(shape: number[], indices: number[] | number[][], axis: number, batchDims = 0): GradientCase {
  return {
    name: `${JSON.stringify(indices)} of [${shape}] along ${axis}, ${batchDims} batch dimensions`,
    inputs: [plain(shape)],
    op: (x) => tf.gather(x!, tf.tensor(indices, undefined, "int32") as tf.Tensor1D, axis, batchDims),
  };
}

export const ARRAYS: Cases = {
  [tf.ArgMax]: each(
    [3, 4],
    { "added to its input": (x) => tf.add(x!, tf.argMax(x!, 1).expandDims(1)) },
    apart,
  ),
  [tf.ArgMin]: each([3, 4], { "added to its input": (x) => tf.add(x!, tf.argMin(x!, 0)) }, apart),
  [tf.BatchMatMul]: matMuls(),
  [tf.BatchToSpaceND]: [
    {
      name: "blocks [2, 3], cropped",
      inputs: [plain([12, 2, 2, 2])],
      op: (x) => tf.batchToSpaceND(x as tf.Tensor4D, [2, 3], [[1, 0], [0, 2]]),
    },
  ],
  [tf.Concat]: [0, 1, -1].map((axis) => ({
    name: `along ${axis}`,
    inputs: [2, 3, 1].map((length, i) => {
      const shape = [2, 3, 4];
      shape.splice(axis, 1, length);
      return plain(shape, i);
    }),
    op: (...parts) => tf.concat(parts, axis),
  })),
  [tf.Cumsum]: [0, 1, 2, -2].flatMap((axis) =>
    [[false, false], [true, false], [false, true], [true, true]].map(([exclusive, reverse]) =>
      ({
        name: `along ${axis}${exclusive ? ", exclusive" : ""}${reverse ? ", reversed" : ""}`,
        inputs: [plain([3, 2, 4])],
        op: (x: tf.Tensor) => tf.cumsum(x, axis, exclusive, reverse),
      }) as GradientCase
    )
  ),
  [tf.ExpandDims]: each([2, 3], {
    "along 0": (x) => tf.expandDims(x!, 0),
    "along -1": (x) => tf.expandDims(x!, -1),
  }),
  [tf.GatherV2]: [
    gather([5, 4, 3], [3, 0, 3, 1], 0),
    gather([5, 4, 3], [[3, 0, 3], [1, 3, 0]], 0),
    gather([5, 4, 3], [3, 0, 3, 1], 1),
    gather([5, 4, 3], [[2, 0], [1, 2]], 2),
    gather([5, 4, 3], [2, 0, 2], -1),
    gather([5, 4, 3], [3, 0, 3], -2),
    gather([2, 4, 3], [[3, 0, 3], [1, 1, 2]], 1, 1),
    gather([2, 4, 3], [[2, 0], [1, 1]], 2, 1),
    gather([2, 4, 3], [[2, 0], [1, 1]], -1, 1),
    {
      name: "two batch dimensions",
      inputs: [plain([2, 2, 3, 2])],
      op: (x) => tf.gather(x!, tf.tensor3d([0, 2, 1, 1, 2, 2, 0, 1], [2, 2, 2], "int32") as never, 2, 2),
    },
  ],
  [tf.Max]: reduction(tf.max, apart),
  [tf.Mean]: [
    ...reduction(tf.mean, plain),
    { name: "many rows", inputs: [plain([40, 9, 4])], op: (x) => tf.mean(tf.square(x!), [0, 1]) },
  ],
  [tf.Min]: reduction(tf.min, apart),
  [tf.MirrorPad]: (["reflect", "symmetric"] as const).flatMap((mode) =>
    [[[1, 1], [2, 0]], [[0, 2], [1, 2]], [[2, 2], [2, 2]]].map((padding) =>
      ({
        name: `${mode} ${JSON.stringify(padding)}`,
        inputs: [plain([3, 4])],
        op: (x: tf.Tensor) => tf.mirrorPad(x, padding as [[number, number]], mode),
      }) as GradientCase
    )
  ),
  [tf.OneHot]: each([4], {
    "of whole numbers": (x) =>
      tf.mul(tf.oneHot(tf.cast(tf.floor(tf.add(x!, 2)), "int32"), 4), tf.reshape(x!, [4, 1])),
  }, (shape) => between(0.2, 0.8, shape)),
  [tf.Pack]: [0, 1, -1].map((axis) => ({
    name: `along ${axis}`,
    inputs: [plain([2, 3]), plain([2, 3], 2), plain([2, 3], 3)],
    op: (...parts) => tf.stack(parts, axis),
  })),
  [tf.PadV2]: each([2, 3, 2], { "every side": (x) => tf.pad(x!, [[1, 0], [0, 2], [1, 1]], 0.5) }),
  [tf.Prod]: reduction(tf.prod, (shape) => between(0.6, 1.4, shape)),
  [tf.Reshape]: each([2, 6], { "to three axes": (x) => tf.reshape(x!, [3, 2, 2]) }),
  [tf.Reverse]: each([2, 3, 2], {
    "all axes": (x) => tf.reverse(x!),
    "the last": (x) => tf.reverse(x!, -1),
    "two": (x) => tf.reverse(x!, [0, 1]),
  }),
  [tf.Slice]: each([3, 4, 2], {
    "in the middle": (x) => tf.slice(x!, [1, 1, 0], [1, 2, 2]),
    "to the end": (x) => tf.slice(x!, [1, 2], [-1, -1]),
  }),
  [tf.Softmax]: each([3, 5], { "the last axis": (x) => tf.softmax(x!) }, (shape) => between(-2, 2, shape)),
  [tf.SpaceToBatchND]: each([2, 3, 4, 2], {
    "blocks [2, 3], padded": (x) => tf.spaceToBatchND(x!, [2, 3], [[1, 0], [0, 2]]),
  }),
  [tf.SplitV]: each([3, 6], {
    "into equal ones": (x) => tf.add(...tf.split(x!, 2, 1) as [tf.Tensor, tf.Tensor]),
    "of which one is used": (x) => tf.split(x!, [1, 3, 2], -1)[1]!,
  }),
  [tf.Sum]: [
    ...reduction(tf.sum, plain),
    {
      name: "many rows",
      inputs: [plain([40, 9, 4])],
      op: (x) => tf.sum(tf.square(x!), [0, 1]),
      tolerance: 2e-3,
    },
  ],
  [tf.Tile]: [[3], [2, 3], [2, 1, 3], [1, 2, 2, 2]].map((reps) => ({
    name: `${reps}`,
    inputs: [plain(reps.map((_, i) => i + 2))],
    op: (x: tf.Tensor) => tf.tile(x, reps),
  })) as unknown as GradientCase[],
  [tf.Transpose]: each([2, 3, 4], {
    "all axes": (x) => tf.transpose(x!),
    "in turn": (x) => tf.transpose(x!, [2, 0, 1]),
  }),
  [tf.Unpack]: each([3, 2, 4], {
    "all parts": (x) => tf.addN(tf.unstack(x!, 0).map((part, i) => tf.mul(part, i + 1))),
    "one of them": (x) => tf.unstack(x!, -1)[2]!,
  }),
  [tf.UnsortedSegmentSum]: [
    segments([2, 0, 2, 1], 3, [4, 3]),
    segments([2, -1, 0, 2, 1, 1], 4, [6, 2, 3]),
  ],
};

function matMuls(): GradientCase[] {
  const cases: GradientCase[] = [];
  const flags = [[false, false], [true, false], [false, true], [true, true]] as const;
  const turned = ([m, n]: number[], turn: boolean) => turn ? [n!, m!] : [m!, n!];
  for (const [transposeA, transposeB] of flags) {
    const batches = [[[], []], [[3], [3]], [[1], [3]], [[3], [1]], [[2, 1], [2, 3]], [[2, 1], [1, 3]], [
      [2],
      [],
    ]];
    for (const [a, b] of batches as [number[], number[]][]) {
      const shapes = [[...a, ...turned([2, 3], transposeA)], [...b, ...turned([3, 4], transposeB)]];
      cases.push({
        name: `[${shapes[0]}]${transposeA ? "'" : ""} and [${shapes[1]}]${transposeB ? "'" : ""}`,
        inputs: [plain(shapes[0]!), plain(shapes[1]!, 2)],
        op: (x, y) => tf.matMul(x!, y!, transposeA, transposeB),
      });
    }
  }
  return cases;
}
