/** A run judged, counted and written out. @module */
import { EXCEPTIONS } from "../exceptions.ts";
import type { ConformanceOptions } from "../options.ts";
import type { KernelComparison, SpecResult } from "../suite/messages.ts";
import type { SuiteResults } from "../suite/process.ts";
import { judge, type Verdict } from "./judge.ts";
import { type FamilyRow, familyRows } from "./rows.ts";
import { familyTable, faults, kernelSummary, legend } from "./text.ts";

/** Everything that is known of a run. */
export interface Report {
  readonly engine: string;
  /** What stands beside it. */
  readonly beside: "node" | "stock" | "nothing";
  readonly families: readonly FamilyRow[];
  readonly verdict: Verdict;
  readonly specs: readonly SpecResult[];
  readonly kernels: readonly KernelComparison[];
  readonly stock: readonly SpecResult[] | undefined;
}

/** Judges and counts a run. */
export function judgeRun(options: ConformanceOptions, ours: SuiteResults, stock?: SuiteResults): Report {
  const besideNode = options.engine === "tensorflow";
  const { specs, kernels, engine } = ours;
  const complete = options.filter.length === 0;
  const judged = { specs, kernels, complete, countLeftOut: !besideNode };
  const verdict = judge(judged, EXCEPTIONS[options.engine]);
  return {
    engine,
    beside: besideNode ? "node" : stock ? "stock" : "nothing",
    families: familyRows({ specs, verdict, besideNode, stock: stock?.specs }),
    verdict,
    specs,
    kernels,
    stock: stock?.specs,
  };
}

/** A report for the terminal. */
export function reportText({ engine, beside, families, verdict, kernels }: Report): string {
  const all = families.at(-1)!;
  const last = verdict.passed
    ? `${engine}: passed ${all.passed} of ${all.specs} specs, ${all.excepted} fail as exceptions.ts says`
    : `${engine}: ${all.failed} of ${all.specs} specs failed, ${verdict.failedKernels.length} faults under ` +
      `capture, ${verdict.stale.length} exceptions that no longer hold`;
  return [
    familyTable(families, beside),
    legend(beside),
    kernels.length > 0 ? kernelSummary(kernels) : "",
    faults(verdict),
    last,
  ].filter((part) => part !== "").join("\n\n");
}
