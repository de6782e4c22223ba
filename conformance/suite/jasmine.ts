/** Jasmine, booted by hand: the specs declare themselves on globals, which must be there first. @module */
import { jasmineRequire } from "../deps.ts";

/** A spec as Jasmine reports it. */
export interface JasmineSpec {
  readonly fullName: string;
  readonly status: string;
  readonly failedExpectations: readonly { readonly message: string }[];
  readonly pendingReason?: string;
}

/** What is told while specs run. */
export interface SpecListener {
  /** How many specs will run. */
  planned(count: number): void;
  started(fullName: string): void;
  /** @param suite the outermost suite that the spec stands in */
  done(spec: JasmineSpec, suite: string): void;
}

interface JasmineEnv {
  configure(options: Record<string, unknown>): void;
  addReporter(reporter: Record<string, (result: never) => void>): void;
  execute(): void;
}

/** Puts Jasmine's globals in place: `describe`, `it`, `expect` and so on. */
export function bootJasmine(): JasmineEnv {
  const jasmine = jasmineRequire.core(jasmineRequire);
  const env = jasmine.getEnv({ suppressLoadErrors: true });
  Object.assign(globalThis, { jasmine }, jasmineRequire.interface(jasmine, env));
  return env;
}

/**
 * Runs the declared specs, in the order in which they were declared.
 *
 * @param wanted whether to run a spec of this full name
 * @throws {Error} if something failed outside of every spec
 */
export function runSpecs(
  env: JasmineEnv,
  wanted: (fullName: string) => boolean,
  listener: SpecListener,
): Promise<void> {
  const suites: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const outside: string[] = [];
  const note = ({ failedExpectations }: { failedExpectations: readonly { message: string }[] }) =>
    outside.push(...failedExpectations.map(({ message }) => message));
  env.configure({
    random: false,
    specFilter: (spec: { getFullName(): string }) => wanted(spec.getFullName()),
  });
  env.addReporter({
    jasmineStarted: ({ totalSpecsDefined }: { totalSpecsDefined: number }) =>
      listener.planned(totalSpecsDefined),
    suiteStarted: ({ description }: { description: string }) => suites.push(description),
    suiteDone: (suite: JasmineSpec) => {
      suites.pop();
      note(suite);
    },
    specStarted: ({ fullName }: JasmineSpec) => listener.started(fullName),
    specDone: (spec: JasmineSpec) => {
      if (spec.status !== "excluded") listener.done(spec, suites[0]!);
    },
    jasmineDone: (run: JasmineSpec) => {
      note(run);
      if (outside.length > 0) reject(new Error(`Failed outside of specs: ${outside.join("; ")}`));
      else resolve();
    },
  });
  env.execute();
  return promise;
}
