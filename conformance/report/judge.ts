/** Judges results by the exceptions: what failed that may not, and what passed that was said to fail. @module */
import type { EngineExceptions } from "../exceptions.ts";
import type { KernelComparison, SpecResult } from "../suite/messages.ts";

/** What a run amounts to. */
export interface Verdict {
  /** Specs that failed and may not. */
  readonly failed: readonly SpecResult[];
  /** Specs that failed as the exceptions say, with the reason. */
  readonly excepted: readonly { readonly spec: SpecResult; readonly reason: string }[];
  /** Specs that fail here and are left out by tfjs-node: not failures of the run. */
  readonly leftOut: readonly SpecResult[];
  /** Kernels that give something else captured, or cannot be captured and are no exception. */
  readonly failedKernels: readonly string[];
  /** What the exceptions say and is not so. */
  readonly stale: readonly string[];
  readonly passed: boolean;
}

/** What was run. */
export interface Judged {
  readonly specs: readonly SpecResult[];
  readonly kernels: readonly KernelComparison[];
  /** Whether all specs ran: only then can an exception be stale for want of a spec. */
  readonly complete: boolean;
  /** Whether specs that tfjs-node leaves out count. */
  readonly countLeftOut: boolean;
}

/** Judges a run. */
export function judge(
  { specs, kernels, complete, countLeftOut }: Judged,
  exceptions: EngineExceptions,
): Verdict {
  const stale: string[] = [];
  const failed: SpecResult[] = [];
  const leftOut: SpecResult[] = [];
  const excepted: { spec: SpecResult; reason: string }[] = [];
  const used = new Set<unknown>();
  for (const spec of specs) {
    const byName = exceptions.specs.find(({ specs }) =>
      typeof specs === "string" ? specs === spec.name : specs.test(spec.name)
    );
    if (byName && spec.status !== "failed") {
      const how = spec.status === "passed" ? "passes" : "does not run";
      stale.push(`Spec "${spec.name}" ${how}, though an exception says that it fails`);
    }
    const exception = byName ?? exceptions.lacking.find(({ kernel }) => lacks(spec, kernel));
    if (exception) used.add(exception);
    if (spec.status !== "failed") continue;
    if (exception) excepted.push({ spec, reason: exception.reason });
    else if (spec.leftOutByNode && !countLeftOut) leftOut.push(spec);
    else failed.push(spec);
  }
  for (const { kernel } of exceptions.uncapturable) {
    const result = kernels.find((result) => result.kernel === kernel);
    if (result && result.different.length + Object.keys(result.uncapturable).length === 0) {
      stale.push(
        `Kernel ${kernel} gives the same when it is captured, though an exception says that it does not`,
      );
    } else if (!result && complete && kernels.length > 0) {
      stale.push(`Kernel ${kernel} was not called, though there is an exception for it`);
    }
  }
  if (complete) stale.push(...unused(exceptions, used));
  const failedKernels = kernels.flatMap((kernel) => kernelFaults(kernel, exceptions));
  const passed = failed.length + failedKernels.length + stale.length === 0;
  return { failed, excepted, leftOut, failedKernels, stale, passed };
}

/** Whether a spec failed by nothing else than that the backend has no such kernel. */
function lacks({ status, failures }: SpecResult, kernel: string): boolean {
  const message = `Kernel '${kernel}' not registered for backend`;
  return status === "failed" && failures.length > 0 && failures.every((failure) => failure.includes(message));
}

function unused({ specs, lacking }: EngineExceptions, used: ReadonlySet<unknown>): string[] {
  return [
    ...specs.filter((exception) => !used.has(exception)).map(({ specs }) =>
      `No spec is called ${specs}, though there is an exception for it`
    ),
    ...lacking.filter((exception) => !used.has(exception)).map(({ kernel }) =>
      `No spec fails for want of kernel ${kernel}, though there is an exception for it`
    ),
  ];
}

function kernelFaults(
  { kernel, different, uncapturable }: KernelComparison,
  exceptions: EngineExceptions,
): string[] {
  if (exceptions.uncapturable.some((exception) => exception.kernel === kernel)) return [];
  const reasons = Object.entries(uncapturable).map(([reason, count]) =>
    `${kernel}: ${count} ${count === 1 ? "call" : "calls"} cannot be captured: ${reason}`
  );
  return [...different, ...reasons];
}
