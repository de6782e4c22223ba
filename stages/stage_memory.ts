/** How much memory a stage takes, told from what it took for one sample and for two. @module */

/** Bytes that grow with the samples of a micro-batch. */
export interface Growth {
  readonly fixed: number;
  readonly perSample: number;
}

/** The largest of these: what takes most for a few samples is not what takes most for many. */
export type Peak = readonly Growth[];

/** What one stage takes of its device's memory, in bytes. */
export interface StageMemory {
  /** What the device has. */
  readonly limit: number;
  /** What is held from step to step: weights and optimizer slots. */
  readonly held: number;
  /** Training: the gradients of the weights, held from the first backward to the update. */
  readonly gradients: number;
  /** What a micro-batch keeps after F, until its last backward. */
  readonly afterF: Growth;
  /** What it keeps after B, where W is apart. */
  readonly afterB: Growth;
  /** The most that each action takes above what is held when it begins. W is empty where it is a part of B. */
  readonly peaks: Readonly<Record<"F" | "B" | "W" | "U", Peak>>;
  /** What W over several micro-batches takes for a while beyond its peak, for the samples of all of them. */
  readonly joined: Growth;
}

/** Bytes for so many samples. */
export function bytesFor({ fixed, perSample }: Growth, samples: number): number {
  return fixed + perSample * samples;
}

/** Bytes of a peak for so many samples; 0 if nothing was seen. */
export function peakFor(peak: Peak, samples: number): number {
  return Math.max(0, ...peak.map((growth) => bytesFor(growth, samples)));
}

/** The growth that takes `one` for one sample and `two` for two. */
export function growth(one: number, two: number): Growth {
  return { fixed: 2 * one - two, perSample: two - one };
}

/** Those of `all` that can be the largest for some number of samples. */
export function highest(all: readonly Growth[]): Peak {
  const kept: Growth[] = [];
  const steepest = [...all].sort((a, b) => b.perSample - a.perSample || b.fixed - a.fixed);
  for (const line of steepest) if (line.fixed > (kept.at(-1)?.fixed ?? -Infinity)) kept.push(line);
  return kept;
}
