/** The measured strategies, in the order and under the names of every table and plot. @module */
import type {
  DataParallelResults,
  EpochResults,
  Evaluation,
  Resnet50Results,
  StepResults,
  StrategyResult,
  UnetResults,
} from "../results.ts";

/** One strategy or peer. */
export interface Row {
  readonly kind: "single" | "dataParallel" | "modelParallel" | "pipeline" | "peer";
  /** What a reader calls it: "sequential", "data parallel ring", "pipeline 1f1b", "torch single". */
  readonly name: string;
  /** Within its kind: the schedule of a pipeline, how data parallel replicas add up; the name otherwise. */
  readonly short: string;
  /** Of a peer, only its steps are known. */
  readonly result: StepResults & Partial<StrategyResult & EpochResults & { evaluation: Evaluation }>;
}

const REDUCTIONS = { ring: "ring", parameterServer: "parameter server" } as const;

/** Sequential, data parallel, model parallel, pipeline by schedule, then peers; what was not measured is left out. */
export function rowsOf(results: Resnet50Results | undefined): Row[] {
  const rows = new RowList();
  rows.add("single", "sequential", results?.single);
  rows.addDataParallel(results?.dataParallel);
  rows.add("modelParallel", "model parallel", results?.modelParallel);
  for (const [schedule, result] of Object.entries(results?.pipeline ?? {})) {
    rows.add("pipeline", `pipeline ${schedule}`, result, schedule);
  }
  rows.addPeers(results?.peers);
  return rows.list;
}

/** The same of the U-Net comparison; its pipeline is the one at the best cut. */
export function unetRowsOf(results: UnetResults | undefined): Row[] {
  const rows = new RowList();
  rows.add("single", "single", results?.single);
  rows.addDataParallel(results?.dataParallel);
  rows.add("modelParallel", "model parallel", results?.modelParallel);
  const best = results?.pipeline?.best;
  if (best && "rounds" in best) rows.add("pipeline", "pipeline best cut", best, "best cut");
  rows.addPeers(results?.peers);
  return rows.list;
}

class RowList {
  readonly list: Row[] = [];

  add(kind: Row["kind"], name: string, result: Row["result"] | undefined, short = name): void {
    if (result !== undefined) this.list.push({ kind, name, short, result });
  }

  addDataParallel(results: DataParallelResults<Row["result"]> = {}): void {
    for (const [key, name] of Object.entries(REDUCTIONS)) {
      this.add("dataParallel", `data parallel ${name}`, results[key as keyof typeof REDUCTIONS], name);
    }
  }

  addPeers(peers: Readonly<Record<string, Row["result"]>> = {}): void {
    for (const [name, result] of Object.entries(peers)) this.add("peer", name, result);
  }
}
