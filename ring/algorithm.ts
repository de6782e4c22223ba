/**
 * How the members of a group share the work of a sum.
 *
 * A member's work lies in lanes, each of as many units. It does unit k of a lane once it has done unit k of the
 * lane before, and another member, where one is named, has done its own unit k of the lane that is named.
 * @module
 */
import type { Contribution } from "./group.ts";

/** One member's work on one sum. */
export interface Work {
  /** Units in each lane; the same for every member. */
  readonly units: number;
  /** Lanes of this member. */
  readonly lanes: number;
  /** Whose unit must have been done before this member's, beside its own of the lane before. */
  before(lane: number): Place | undefined;
  /** Does a unit. */
  run(lane: number, unit: number, contribution: Contribution): void;
  /** The sum is whole when these lanes are done. */
  readonly last: readonly Place[];
}

/** A lane of a member. */
export interface Place {
  readonly member: number;
  readonly lane: number;
}
