/** Actions of a schedule, as data and as text: `F0 F1 B0 W0 W1x3 BW2 R U`. @module */

/**
 * What a device does next. F: forward. B: backward to the inputs. W: backward to the weights, of `count`
 * micro-batches in one call. BW: both. R: the end of adding up gradients with the other replicas. U: the optimizer's
 * update.
 */
export type ActionKind = "F" | "B" | "W" | "BW" | "R" | "U";

/** One action on one device. */
export interface Action {
  /** What is computed. */
  readonly kind: ActionKind;
  /** The first micro-batch that it works on; -1 for R and U. */
  readonly microBatch: number;
  /** How many, counted from `microBatch`. */
  readonly count: number;
}

/** The actions of each stage, in order. */
export type Schedule = readonly (readonly Action[])[];

/** Makes an action. */
export function action(kind: ActionKind, microBatch = -1, count = 1): Action {
  return { kind, microBatch, count };
}

/** An action as text. */
export function formatAction({ kind, microBatch, count }: Action): string {
  if (kind === "R" || kind === "U") return kind;
  return count === 1 ? `${kind}${microBatch}` : `${kind}${microBatch}x${count}`;
}

/** A schedule as text, a line per stage. */
export function formatSchedule(schedule: Schedule): string {
  return schedule.map((actions) => actions.map(formatAction).join(" ")).join("\n");
}

/** Reads what `formatSchedule` wrote. @throws {SyntaxError} naming the word that is no action */
export function parseSchedule(text: string): Schedule {
  return text.trim().split("\n").map((line) =>
    line.trim().split(/\s+/).map((word) => {
      const match = /^(BW|[FBW])(\d+)(?:x(\d+))?$/.exec(word);
      if (word === "R" || word === "U") return action(word);
      if (!match) {
        throw new SyntaxError(`Cannot read action "${word}": expected one such as F0, B1, W2x3, BW0, R or U`);
      }
      return action(match[1] as ActionKind, Number(match[2]), Number(match[3] ?? 1));
    })
  );
}
