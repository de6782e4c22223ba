/** What was measured of convolutions, as text. @module */
import type { ConvolutionPart } from "./shapes.ts";

/** One convolution, one part, timed. */
export interface ConvolutionTiming {
  /** "256 to 64, 1x1/1, 32x32 in". */
  readonly shape: string;
  /** How often ResNet50 has it. */
  readonly count: number;
  readonly part: ConvolutionPart;
  /** Multiplications and additions. */
  readonly flops: number;
  /** Milliseconds by the way in which it runs. */
  readonly ms: Readonly<Partial<Record<string, number>>>;
  /** The way that the engine takes. */
  readonly chosen: string;
}

/** What the engine takes in brackets, with its speed; at the end, what all of them take. */
export function convolutionTable(timings: readonly ConvolutionTiming[]): string {
  const lines = timings.map(({ shape, count, part, flops, ms, chosen }) => {
    const ways = Object.entries(ms).map(([way, t]) =>
      way === chosen ? `[${way} ${t!.toFixed(2)}]` : `${way} ${t!.toFixed(2)}`
    );
    const speed = flops / ms[chosen]! / 1e6;
    return `${shape.padEnd(28)} x${count}  ${part.padEnd(15)} ${speed.toFixed(1).padStart(5)} GFLOP/s  ${
      ways.join("  ")
    }`;
  });
  const total = (pick: (t: ConvolutionTiming) => number) =>
    timings.reduce((sum, t) => sum + t.count * pick(t), 0);
  const everywhere = Object.keys(timings[0]!.ms).filter((way) => timings.every(({ ms }) => way in ms));
  const chosen = total(({ ms, chosen }) => ms[chosen]!);
  const sums = [
    ...everywhere.map((way) => [way, total(({ ms }) => ms[way]!)] as const),
    ["as chosen", chosen] as const,
    ["best of each", total(({ ms }) => Math.min(...Object.values(ms) as number[]))] as const,
  ];
  return [
    ...lines,
    "",
    "milliseconds of a micro-batch's convolutions, all parts: " +
    sums.map(([way, ms]) => `${way} ${ms.toFixed(0)}`).join(", "),
    `as chosen: ${(total(({ flops }) => flops) / chosen / 1e6).toFixed(1)} GFLOP/s`,
  ].join("\n");
}
