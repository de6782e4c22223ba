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
  const matched = new Set<unknown>();
  for (const spec of specs) {
    const exception = exceptions.specs.find(({ specs }) =>
      typeof specs === "string" ? specs === spec.name : specs.test(spec.name)
    );
    if (exception) matched.add(exception);
    if (exception && spec.status !== "failed") {
      stale.push(
        `Spec "${spec.name}" ${
          spec.status === "passed" ? "passes" : "does not run"
        }, though an exception says that it fails`,
      );
    } else if (exception) excepted.push({ spec, reason: exception.reason });
    else if (spec.status === "failed") (spec.leftOutByNode && !countLeftOut ? leftOut : failed).push(spec);
  }
  const failedKernels = kernels.flatMap((kernel) => kernelFaults(kernel, exceptions));
  for (const { kernel } of exceptions.kernels) {
    const result = kernels.find((result) => result.kernel === kernel);
    if (result && result.different.length + Object.keys(result.uncapturable).length === 0) {
      stale.push(
        `Kernel ${kernel} gives the same when it is captured, though an exception says that it does not`,
      );
    } else if (!result && complete && kernels.length > 0) {
      stale.push(`Kernel ${kernel} was not called, though there is an exception for it`);
    }
  }
  if (complete) {
    for (const exception of exceptions.specs) {
      if (!matched.has(exception)) {
        stale.push(`No spec is called ${String(exception.specs)}, though there is an exception for it`);
      }
    }
  }
  const passed = failed.length + failedKernels.length + stale.length === 0;
  return { failed, excepted, leftOut, failedKernels, stale, passed };
}

function kernelFaults(
  { kernel, different, uncapturable }: KernelComparison,
  exceptions: EngineExceptions,
): string[] {
  if (exceptions.kernels.some((exception) => exception.kernel === kernel)) return [];
  const reasons = Object.entries(uncapturable).map(([reason, count]) =>
    `${kernel}: ${count} ${count === 1 ? "call" : "calls"} cannot be captured: ${reason}`
  );
  return [...different, ...reasons];
}
