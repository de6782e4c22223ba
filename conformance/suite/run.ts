/** Runs tfjs-core's specs on one engine, in this process. @module */
import { tf } from "../../deps.ts";
import type { KernelRecorder } from "../capture/recorder.ts";
import { bundleSpecs, type SpecBundle, type TestEnvironment } from "./bundle.ts";
import { environmentOf, type StartedSubject, startSubject, type Subject } from "./engines.ts";
import { bootJasmine, runSpecs } from "./jasmine.ts";
import type { Message, SpecResult, SpecStatus } from "./messages.ts";
import { readIgnoreList } from "./tfjs_node.ts";

/** What runs. */
export interface RunOptions {
  readonly subject: Subject;
  /** Parts of specs' names, of which one must occur; none: all specs run. */
  readonly filter: readonly string[];
  /** Records the kernel calls of specs. */
  readonly recorder?: KernelRecorder;
}

/** Runs the specs, and tells of each. @returns the engine, which stays started */
export async function runSuite(
  { subject, filter, recorder }: RunOptions,
  tell: (message: Message) => void,
): Promise<StartedSubject> {
  const environment = environmentOf(subject);
  const label = ` ${environment.name} ${JSON.stringify(environment.flags)}`;
  const code = await bundleSpecs(environment);
  const jasmine = bootJasmine();
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const bundle = await import(url) as SpecBundle;
  // After the bundle, whose own copy of tfjs-core registers nothing else that the engine would replace.
  const engine = await startSubject(subject);
  checkShared(bundle, environment);
  recorder?.start();
  tell({ kind: "engine", description: engine.description });
  const ignored = readIgnoreList();
  const named = (fullName: string) => fullName.replace(label, "");
  const seen = new Map<string, number>();
  const wanted = (fullName: string) =>
    filter.length === 0 || filter.some((part) => named(fullName).includes(part));
  await runSpecs(jasmine, wanted, {
    planned: (count) => tell({ kind: "specs", count }),
    started: (fullName) => tell({ kind: "begin", spec: named(fullName) }),
    done({ fullName, status, failedExpectations }, suite) {
      const count = (seen.get(fullName) ?? 0) + 1;
      seen.set(fullName, count);
      const result: SpecResult = {
        subject: named(suite).trim(),
        name: count === 1 ? named(fullName) : `${named(fullName)} (${count})`,
        onBackend: fullName.includes(label),
        leftOutByNode: ignored.some((part) => fullName.includes(part)),
        status: status as SpecStatus,
        failures: failedExpectations.map(({ message }) => message),
      };
      recorder?.specDone(status === "passed");
      tell({ kind: "spec", result });
    },
  });
  recorder?.stop();
  return engine;
}

/**
 * Sees that specs run on Stagger's engine: with its tfjs-core's state, and with its kernels.
 *
 * @throws {Error} if the bundle's tfjs-core has state of its own
 */
export function checkShared(bundle: SpecBundle, { backendName }: TestEnvironment): void {
  const shared: Record<string, boolean> = {
    engine: bundle.ENGINE === tf.engine(),
    environment: bundle.env() === tf.env(),
    "Tensor class": bundle.getGlobalTensorClass() === tf.Tensor,
    kernels: bundle.getKernel(tf.Conv2D, backendName) === tf.getKernel(tf.Conv2D, backendName),
    gradients: bundle.getGradient(tf.Conv2D) === tf.getGradient(tf.Conv2D),
  };
  const own = Object.keys(shared).filter((name) => !shared[name]);
  if (own.length > 0) {
    throw new Error(
      `Specs do not share TensorFlow.js with the engine: they have their own ${own.join(", ")}`,
    );
  }
}
