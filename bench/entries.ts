/** The strategies that take part in a comparison. @module */
import type { DistributeOptions } from "../runtime/options.ts";
import type { Entry } from "./compare.ts";
import type { Contestant } from "./contestant.ts";
import type { BenchOptions } from "./options.ts";
import type { DataParallelResults, StrategyResult } from "./results.ts";

/** Seed of weights and of the order of samples, the same for all. */
export const SEED = 1;

/** What all strategies are told. */
export function commonOptions(
  { engine }: Pick<BenchOptions, "engine">,
  devices: readonly string[],
  notice: (line: string) => void,
): DistributeOptions {
  return { engine, devices, seed: SEED, notice };
}

/** How data parallel replicas add up, in the order of the table: the names of their results too. */
const REDUCTIONS = ["ring", "parameterServer"] as const;

/** Training on one device, where it takes part. Its entry comes first: what is kept after a Ctrl-C has its speedups. */
export function singleEntries(
  { strategies }: Pick<BenchOptions, "strategies">,
  common: DistributeOptions,
): Entry[] {
  if (!strategies.includes("single")) return [];
  const devices = (common.devices ?? []).slice(0, 1);
  return [{ name: "single", options: { ...common, strategy: "single", devices } }];
}

/** Data parallel training, by how replicas add up. */
export function dataParallelEntries(
  { strategies }: Pick<BenchOptions, "strategies">,
  common: DistributeOptions,
): Entry[] {
  const { devices = [] } = common;
  const list: Entry[] = [];
  if (strategies.includes("dataParallel") && devices.length > 1) {
    for (const allreduce of REDUCTIONS) {
      list.push({ name: allreduce, options: { ...common, strategy: "dataParallel", allreduce } });
    }
  }
  return list;
}

/** What was measured of contestants, by their names, against `single`. */
export class Measured<Result = StrategyResult> {
  readonly #byName: ReadonlyMap<string, Contestant>;
  readonly single: readonly number[] | undefined;

  /** @param complete adds to what each contestant tells */
  constructor(
    contestants: readonly Contestant[],
    readonly complete: (result: StrategyResult, name: string) => Result,
  ) {
    this.#byName = new Map(contestants.map((contestant) => [contestant.name, contestant]));
    this.single = this.#byName.get("single")?.rounds;
  }

  /** `{ [name]: result }`, or nothing where it did not take part. */
  entry<Name extends string>(name: Name): { readonly [N in Name]?: Result } {
    const result = this.#byName.get(name)?.result(this.single);
    return (result ? { [name]: this.complete(result, name) } : {}) as { [N in Name]?: Result };
  }

  /** `{ dataParallel }`, or nothing. */
  dataParallel(): { readonly dataParallel?: DataParallelResults<Result> } {
    const both: DataParallelResults<Result> = { ...this.entry("ring"), ...this.entry("parameterServer") };
    return both.ring || both.parameterServer ? { dataParallel: both } : {};
  }
}
