/** The measured strategies, in the order and under the names of every table and plot. @module */
import type { Resnet50Results, StepResults, StrategyResult } from "../results.ts";

/** One strategy or peer. */
export interface Row {
  readonly kind: "single" | "modelParallel" | "pipeline" | "peer";
  /** What a reader calls it: "sequential", "pipeline 1f1b", "torch single". */
  readonly name: string;
  /** The schedule of a pipeline, the name otherwise. */
  readonly short: string;
  /** Of a peer, only its steps are known. */
  readonly result: StepResults & Partial<StrategyResult>;
}

/** Sequential, model parallel, pipeline by schedule, then peers; what was not measured is left out. */
export function rowsOf(results: Resnet50Results | undefined): Row[] {
  const rows: Row[] = [];
  const add = (kind: Row["kind"], name: string, result: Row["result"] | undefined, short = name) => {
    if (result !== undefined) rows.push({ kind, name, short, result });
  };
  add("single", "sequential", results?.single);
  add("modelParallel", "model parallel", results?.modelParallel);
  for (const [schedule, result] of Object.entries(results?.pipeline ?? {})) {
    add("pipeline", `pipeline ${schedule}`, result, schedule);
  }
  for (const [name, result] of Object.entries(results?.peers ?? {})) add("peer", name, result);
  return rows;
}
