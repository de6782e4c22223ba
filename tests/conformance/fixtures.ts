/** Results that no engine gave. @module */
import type { EngineExceptions } from "../../conformance/exceptions.ts";
import { judge, type Judged, type Verdict } from "../../conformance/report/judge.ts";
import type { KernelComparison, SpecResult } from "../../conformance/suite/messages.ts";

/** A spec's result; it passed unless said otherwise. */
export function spec(name: string, more: Partial<SpecResult> = {}): SpecResult {
  return {
    subject: name.split(" ")[0]!,
    name,
    onBackend: true,
    leftOutByNode: false,
    status: "passed",
    failures: more.status === "failed" ? [`${name} went wrong`] : [],
    ...more,
  };
}

/** A kernel's comparison; all of two calls were identical unless said otherwise. */
export function kernel(name: string, more: Partial<KernelComparison> = {}): KernelComparison {
  return { kernel: name, compared: 2, identical: 2, close: 0, different: [], uncapturable: {}, ...more };
}

/** Judges specs and kernels, by no exceptions unless some are given. */
export function verdictOf(
  specs: readonly SpecResult[],
  { kernels = [], exceptions = {}, complete = true, countLeftOut = false }: {
    kernels?: readonly KernelComparison[];
    exceptions?: Partial<EngineExceptions>;
  } & Partial<Judged> = {},
): Verdict {
  return judge({ specs, kernels, complete, countLeftOut }, {
    specs: [],
    lacking: [],
    uncapturable: [],
    ...exceptions,
  });
}
