/** What was measured of convolutions, as text. @module */
import type { ConvolutionPart } from "./shapes.ts";

/** One convolution, one part, timed. */
export interface ConvolutionTiming {
  /** "256 to 64, 1x1/1, 32x32 in". */
  readonly shape: string;
  /** How often the model has it. */
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
  const ways = [...new Set(timings.flatMap(({ ms }) => Object.keys(ms)))];
  const everywhere = ways.filter((way) => timings.every(({ ms }) => way in ms));
  const sums = [
    ...everywhere.map((way) => [way, total(timings, ({ ms }) => ms[way]!)] as const),
    ["as chosen", total(timings, chosenMs)] as const,
    ["best of each", total(timings, ({ ms }) => Math.min(...Object.values(ms) as number[]))] as const,
  ];
  const partly = ways.filter((way) => !everywhere.includes(way)).map((way) => {
    const able = timings.filter(({ ms }) => way in ms);
    const [there, chosen] = [total(able, ({ ms }) => ms[way]!), total(able, chosenMs)];
    return `of the parts that run as ${way}: ${way} ${there.toFixed(0)}, as chosen ${chosen.toFixed(0)}`;
  });
  return [
    ...lines,
    "",
    "milliseconds of a micro-batch's convolutions, all parts: " +
    sums.map(([way, ms]) => `${way} ${ms.toFixed(0)}`).join(", "),
    ...partly,
    `as chosen: ${
      (total(timings, ({ flops }) => flops) / total(timings, chosenMs) / 1e6).toFixed(1)
    } GFLOP/s`,
  ].join("\n");
}

/** Over all convolutions of the model. */
function total(timings: readonly ConvolutionTiming[], pick: (timing: ConvolutionTiming) => number): number {
  return timings.reduce((sum, timing) => sum + timing.count * pick(timing), 0);
}

function chosenMs({ ms, chosen }: ConvolutionTiming): number {
  return ms[chosen]!;
}
