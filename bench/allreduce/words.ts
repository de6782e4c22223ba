/** How figures of summing among workers are worded, in the terminal and on the page. @module */
import type { AllreduceResults, AllreduceTiming, ContestantName } from "./results.ts";

/** What the contestants are called. */
export const CONTESTANT_TITLES: Readonly<Record<ContestantName, string>> = {
  ring: "ring",
  parameterServer: "server",
  gloo: "gloo",
  memcpy: "memcpy",
};

/** What the figures mean. */
export const MEANING: readonly string[] = [
  "GB/s: bytes that each worker contributes, by the time until all have the sum of all; median over rounds",
  "server: a parameter server, one worker sums and the others read; gloo: PyTorch's all_reduce between processes",
  "memcpy: every worker copies (workers - 1)/workers of its bytes twice, as many as a ring's members send each other",
  "ratios: of speeds in the same round, median over rounds; memcpy is 100 %",
];

/** "Sums between workers, 5 rounds, on 2 cores; more than 2 workers share them" */
export function headline({ settings: { rounds, cores }, cases }: AllreduceResults): string {
  const shared = cases.some(({ workers }) => workers > cores)
    ? `; more than ${cores} workers share them`
    : "";
  return `Sums between workers, ${rounds} ${rounds === 1 ? "round" : "rounds"}, on ${cores} ${
    cores === 1 ? "core" : "cores"
  }${shared}`;
}

/** "4 kB", "100 MB" */
export function bytesName(bytes: number): string {
  for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const) {
    if (bytes >= unit) return `${Number((bytes / unit).toPrecision(3))} ${name}`;
  }
  return `${bytes} B`;
}

/** "6.13", without a unit. */
export function gigabytes(timing: AllreduceTiming | undefined): string {
  return timing ? significant(timing.gigabytesPerSecond) : NOTHING;
}

/** "4.5x" */
export function times(ratio: number | undefined): string {
  return ratio === undefined ? NOTHING : `${significant(ratio, 2)}x`;
}

/** What the ring reaches of memcpy's speed, from memcpy's seconds over its own: "67 %". */
export function percent(ratio: number | undefined): string {
  return ratio === undefined ? NOTHING : `${Math.round(ratio * 100)} %`;
}

const NOTHING = "–";

function significant(value: number, digits = 3): string {
  return value >= 10 ** (digits - 1) ? value.toFixed(0) : value.toPrecision(digits);
}
