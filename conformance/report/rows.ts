/** What is counted of a run, a family a row. @module */
import type { SpecResult } from "../suite/messages.ts";
import { FAMILY_NAMES, familyOf } from "./families.ts";
import type { Verdict } from "./judge.ts";

/** Counts of one family. */
export interface FamilyRow {
  readonly family: string;
  /** Specs that the engine is judged by; those that the suite leaves out itself do not count. */
  readonly specs: number;
  readonly passed: number;
  /** Failed as an exception says. */
  readonly excepted: number;
  readonly failed: number;
  /** Pass here, though the peer cannot run them: tfjs-node leaves them out, or stock tfjs-backend-wasm fails them. */
  readonly gained: number;
  /** Fail here, and the peer does not run them: tfjs-node leaves them out. */
  readonly leftOut: number;
  /** Pass on stock tfjs-backend-wasm. Absent where nothing stands beside. */
  readonly stock?: number;
  /** Pass on stock tfjs-backend-wasm and fail here, without an exception. */
  readonly lost?: number;
}

/** What is counted. */
export interface Counted {
  readonly specs: readonly SpecResult[];
  readonly verdict: Verdict;
  /** Whether the peer is tfjs-node, and specs that it leaves out are counted apart. */
  readonly besideNode: boolean;
  /** The same specs on stock tfjs-backend-wasm. */
  readonly stock?: readonly SpecResult[];
}

/** Rows of the families that have specs, and one of all together at the end. */
export function familyRows(counted: Counted): FamilyRow[] {
  const byFamily = Map.groupBy(counted.specs, familyOf);
  const rows = FAMILY_NAMES.flatMap((family) => {
    const specs = byFamily.get(family);
    return specs ? [rowOf(family, specs, counted)] : [];
  });
  return [...rows, rowOf("all", counted.specs, counted)];
}

function rowOf(
  family: string,
  specs: readonly SpecResult[],
  { verdict, besideNode, stock }: Counted,
): FamilyRow {
  const excepted = new Set(verdict.excepted.map(({ spec }) => spec));
  const ran = specs.filter(({ status }) => status !== "pending");
  const judged = ran.filter(({ leftOutByNode }) => !besideNode || !leftOutByNode);
  const others = besideNode ? ran.filter(({ leftOutByNode }) => leftOutByNode) : [];
  const passed = judged.filter(({ status }) => status === "passed");
  const failed = judged.filter(({ status }) => status === "failed");
  const row = {
    family,
    specs: judged.length,
    passed: passed.length,
    excepted: failed.filter((spec) => excepted.has(spec)).length,
    failed: failed.filter((spec) => !excepted.has(spec)).length,
    gained: others.filter(({ status }) => status === "passed").length,
    leftOut: others.filter(({ status }) => status === "failed").length,
  };
  if (stock === undefined) return row;
  const passing = passingNames(stock);
  return {
    ...row,
    gained: passed.filter(({ name }) => !passing.has(name)).length,
    stock: judged.filter(({ name }) => passing.has(name)).length,
    lost: failed.filter((spec) => !excepted.has(spec) && passing.has(spec.name)).length,
  };
}

function passingNames(specs: readonly SpecResult[]): Set<string> {
  return new Set(specs.filter(({ status }) => status === "passed").map(({ name }) => name));
}
