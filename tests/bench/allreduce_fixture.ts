/** Made-up but plausible sums between workers that the report's tests draw. @module */
import { caseOf } from "../../bench/allreduce/measure.ts";
import type { AllreduceResults, ContestantName } from "../../bench/allreduce/results.ts";

/** Seconds of three rounds. */
function rounds(seconds: number): number[] {
  return [seconds, 1.1 * seconds, 0.95 * seconds];
}

/** Three numbers of workers, two sizes, with and without gloo. */
export function allreduceResults(gloo = true): AllreduceResults {
  const cases = [2, 4, 8].flatMap((workers) =>
    [4e3, 1e8].map((bytes) => {
      const seconds = (factor: number) => rounds(1e-5 + factor * workers * bytes / 1e10);
      const measured: [ContestantName, number[]][] = [
        ["ring", seconds(1)],
        ["parameterServer", seconds(workers / 2 + 0.5)],
        ["memcpy", seconds(0.7)],
      ];
      if (gloo) measured.push(["gloo", seconds(5)]);
      return caseOf(workers, bytes, new Map(measured));
    })
  );
  const reason = "needs 14.8 GB of memory: 12.0 GB are free";
  return { settings: { rounds: 3, cores: 2 }, cases, skipped: [{ workers: 8, bytes: 4e8, reason }] };
}
