/** Every partition with every split size: measured, predicted, and which is best. @module */
import { median } from "../median.ts";
import type { CutResult } from "../results.ts";
import { NOTHING, signed, significant } from "./columns.ts";

/** One partition with one split size. */
export interface CutCell {
  /** Seconds per step. */
  readonly measured?: number;
  readonly predicted?: number;
  /** `predicted / measured - 1`, where both are known. */
  readonly error?: number;
  /** Whether it is the fastest that was measured; without a measurement, the fastest predicted. */
  readonly best: boolean;
}

/** Partitions as rows, split sizes as columns. */
export interface CutsTable {
  readonly partitions: readonly string[];
  readonly splitSizes: readonly number[];
  /** `[partition][split size]`; what was neither measured nor predicted is missing. */
  readonly cells: readonly (readonly (CutCell | undefined)[])[];
  /** Whether anything was measured. */
  readonly measured: boolean;
  /** How to read it, and what it came to: a line each. */
  readonly notes: readonly string[];
}

/** Orders the results of an enumeration, or of a forecast. */
export function cutsTable(results: readonly CutResult[]): CutsTable {
  const partitions = [...new Set(results.map(nameOf))];
  const splitSizes = [...new Set(results.map(({ splitSize }) => splitSize))].sort((a, b) => a - b);
  const measured = results.filter(({ secondsPerStep }) => secondsPerStep !== undefined);
  const predicted = results.filter(({ predictedSeconds }) => predictedSeconds !== undefined);
  const best = measured.length > 0
    ? least(measured, ({ secondsPerStep }) => secondsPerStep!)
    : least(predicted, ({ predictedSeconds }) => predictedSeconds!);
  const cells = partitions.map((partition) =>
    splitSizes.map((splitSize): CutCell | undefined => {
      const result = results.find((r) => nameOf(r) === partition && r.splitSize === splitSize);
      if (!result) return undefined;
      const { secondsPerStep, predictedSeconds } = result;
      return {
        ...(secondsPerStep === undefined ? {} : { measured: secondsPerStep }),
        ...(predictedSeconds === undefined ? {} : { predicted: predictedSeconds }),
        ...(secondsPerStep === undefined || predictedSeconds === undefined
          ? {}
          : { error: predictedSeconds / secondsPerStep - 1 }),
        best: result === best,
      };
    })
  );
  return {
    partitions,
    splitSizes,
    cells,
    measured: measured.length > 0,
    notes: notesOf(results, measured, predicted),
  };
}

/** "0.612 (0.600, −2 %)": measured, and in brackets what was predicted, with its error. */
export function cutText({ measured, predicted, error }: CutCell): string {
  const said = predicted === undefined ? NOTHING : significant(predicted);
  if (measured === undefined) return said;
  return error === undefined
    ? significant(measured)
    : `${significant(measured)} (${said}, ${signed(error * 100, 0)} %)`;
}

/** The table as comma-separated values, a line a cut. */
export function cutsCsv(results: readonly CutResult[]): string {
  const head = "partition,splitSize,secondsPerStep,predictedSeconds,errorPercent,speedup,rounds";
  const lines = results.map((result) => {
    const { splitSize, secondsPerStep, predictedSeconds, speedup, rounds } = result;
    const error = secondsPerStep === undefined || predictedSeconds === undefined
      ? undefined
      : (predictedSeconds / secondsPerStep - 1) * 100;
    return [
      nameOf(result),
      splitSize,
      secondsPerStep,
      predictedSeconds,
      error,
      speedup,
      rounds?.join(" "),
    ].map((value) => quoted(value ?? "")).join(",");
  });
  return [head, ...lines].join("\n") + "\n";
}

/** "encoder3 | decoder2": where each stage after the first begins. */
function nameOf({ partition }: CutResult): string {
  return partition.join(" | ");
}

function notesOf(
  results: readonly CutResult[],
  measured: readonly CutResult[],
  predicted: readonly CutResult[],
): string[] {
  const choice = least(predicted, ({ predictedSeconds }) => predictedSeconds!);
  if (measured.length === 0) {
    return [
      "seconds per step as the cost model predicts them from one profile of the layers; none was measured",
      ...(choice
        ? [`* best predicted: ${describe(choice)}, ${significant(choice.predictedSeconds!)} s`]
        : []),
    ];
  }
  const best = least(measured, ({ secondsPerStep }) => secondsPerStep!)!;
  const notes = [
    "seconds per step; in brackets what the cost model predicts from one profile of the layers, and its error",
  ];
  if (measured.length < results.length) {
    notes.push(`${measured.length} of ${results.length} cuts were measured`);
  }
  notes.push(`* best measured: ${describe(best)}, ${significant(best.secondsPerStep!)} s`);
  if (choice) notes.push(`best predicted: ${describe(choice)}, ${outcomeOf(choice, best)}`);
  const errors = measured.filter(({ predictedSeconds }) => predictedSeconds !== undefined)
    .map((r) => Math.abs(r.predictedSeconds! / r.secondsPerStep! - 1) * 100);
  if (errors.length > 0) {
    notes.push(
      `the prediction's error: ${median(errors).toFixed(0)} % at the median, ` +
        `${Math.max(...errors).toFixed(0)} % at most`,
    );
  }
  return notes;
}

/** What the prediction's choice came to. */
function outcomeOf({ predictedSeconds, secondsPerStep }: CutResult, best: CutResult): string {
  if (secondsPerStep === undefined) {
    return `${significant(predictedSeconds!)} s by prediction; it was not measured`;
  }
  const behind = secondsPerStep / best.secondsPerStep! - 1;
  return `measured at ${significant(secondsPerStep)} s: ${signed(behind * 100)} % against the best`;
}

function describe(result: CutResult): string {
  return `${nameOf(result)} in micro-batches of ${result.splitSize}`;
}

function least<T>(values: readonly T[], of: (value: T) => number): T | undefined {
  return values.length === 0
    ? undefined
    : values.reduce((best, value) => of(value) < of(best) ? value : best);
}

/** A field as RFC 4180 writes it. */
function quoted(value: string | number): string {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
