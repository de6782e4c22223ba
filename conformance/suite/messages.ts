/** What the process that runs the specs tells the one that judges them: a line of JSON each. @module */

/** How a spec ended. `pending`: the suite itself leaves it out here. */
export type SpecStatus = "passed" | "failed" | "pending";

/** One spec. */
export interface SpecResult {
  /** The op or subject: the suite that it stands in. */
  readonly subject: string;
  /** Its full name without the environment's; the second spec of a name ends in " (2)". */
  readonly name: string;
  /** Whether it runs on a backend. */
  readonly onBackend: boolean;
  /** Whether tfjs-node leaves it out of its own run. */
  readonly leftOutByNode: boolean;
  readonly status: SpecStatus;
  /** Why it failed, a message per failed expectation. */
  readonly failures: readonly string[];
}

/** A kernel's recorded calls, run again as captured functions. */
export interface KernelComparison {
  readonly kernel: string;
  /** Calls that were compared. */
  readonly compared: number;
  /** Of these, those whose values were the same bits. */
  readonly identical: number;
  /** Of the others, those within the tolerance. */
  readonly close: number;
  /** What differed, a line per call. */
  readonly different: readonly string[];
  /** Why calls could not be captured, with their number. */
  readonly uncapturable: Readonly<Record<string, number>>;
}

/** A message. */
export type Message =
  | { readonly kind: "engine"; readonly description: string }
  | { readonly kind: "specs"; readonly count: number }
  | { readonly kind: "begin"; readonly spec: string }
  | { readonly kind: "spec"; readonly result: SpecResult }
  | { readonly kind: "calls"; readonly count: number }
  | { readonly kind: "call"; readonly kernel: string }
  | { readonly kind: "kernel"; readonly result: KernelComparison }
  | { readonly kind: "end" };
