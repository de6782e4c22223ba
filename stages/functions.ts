/**
 * Loss and metric functions on their way to a worker. A function cannot be posted; its source can, if it needs
 * nothing but `tf` and its arguments. A function that needs more is named with the module that exports it.
 * @module
 */
import { tf } from "../deps.ts";
import type { LossFunction } from "./tfjs.ts";

/** A function by the module that exports it: each worker imports the module. */
export interface ModuleFunction {
  /** Absolute URL, such as `import.meta.resolve("./my_loss.ts")`. */
  readonly module: string;
  /** Name of the export. */
  readonly name: string;
}

/** A loss or metric as a user gives it: tfjs-layers' name, a function, or one in a module. */
export type FunctionLike = string | LossFunction | ModuleFunction;

/** The same as plain data. */
export type PortableFunction = string | ModuleFunction | { readonly source: string; readonly label: string };

/**
 * Makes a function portable.
 *
 * @throws {TypeError} if its source does not stand on its own, or does not even parse
 */
export function toPortable(what: string, f: FunctionLike): PortableFunction {
  if (typeof f === "string") return f;
  if (typeof f !== "function") {
    if (typeof f?.module === "string" && typeof f.name === "string") {
      return { module: f.module, name: f.name };
    }
    throw new TypeError(
      `Cannot use ${JSON.stringify(f)} as ${what}: expected a name, a function or { module, name }`,
    );
  }
  const label = f.name || "anonymous";
  const own = ownName(f);
  if (own !== undefined) return { source: own, label };
  const portable = { source: f.toString(), label };
  probe(what, portable, f);
  return portable;
}

/** The function behind its portable form; names pass through for tfjs-layers to resolve. */
export async function fromPortable(f: PortableFunction): Promise<string | LossFunction> {
  if (typeof f === "string") return f;
  if ("source" in f) return named(evaluate(f.source), f.label);
  const exports = await import(f.module) as Record<string, unknown>;
  const found = exports[f.name];
  if (typeof found !== "function") {
    throw new TypeError(
      `Cannot find function "${f.name}" in ${f.module}: it exports ${Object.keys(exports).join(", ")}`,
    );
  }
  return found as LossFunction;
}

/** Where TensorFlow.js has this very function, such as `tf.losses.huberLoss`: its source needs its module. */
function ownName(f: LossFunction): string | undefined {
  for (const [path, place] of [["tf.losses", tf.losses], ["tf.metrics", tf.metrics], ["tf", tf]] as const) {
    const found = Object.entries(place).find(([, value]) => value === f);
    if (found) return `${path}.${found[0]}`;
  }
  return undefined;
}

/** Metrics are reported by their function's name, which the source of an arrow function has not. */
function named(f: LossFunction, label: string): LossFunction {
  return f.name === "" && label !== "anonymous" ? Object.defineProperty(f, "name", { value: label }) : f;
}

function evaluate(source: string): LossFunction {
  return new Function("tf", `"use strict"; return (${source});`)(tf) as LossFunction;
}

/** Runs the source on its own once, so that what it lacks is named before any worker starts. */
function probe(
  what: string,
  { source, label }: { source: string; label: string },
  original: LossFunction,
): void {
  const remedy =
    `export it from a module and pass { module: import.meta.resolve("./file.ts"), name: "${label}" }`;
  let alone: LossFunction;
  try {
    alone = evaluate(source);
  } catch (error) {
    throw new TypeError(
      `Cannot send ${what} "${label}" to a worker: its source does not stand alone (${
        message(error)
      }); ${remedy}`,
    );
  }
  const sample = () => tf.tensor2d([[0.25, 0.75], [0.5, 0.5]]);
  tf.tidy(() => {
    let value: unknown;
    try {
      value = original(sample(), sample());
    } catch {
      return; // it wants other shapes than the sample's; the worker will tell what is wrong, if anything is
    }
    if (!(value instanceof tf.Tensor)) {
      throw new TypeError(
        `Cannot use ${what} "${label}": it gives ${
          String(value)
        }, expected a tensor; compute it by ops of tf`,
      );
    }
    const expected = tf.mean(value);
    let got: tf.Tensor;
    try {
      got = tf.mean(alone(sample(), sample()));
    } catch (error) {
      throw new TypeError(
        `Cannot send ${what} "${label}" to a worker: it uses something outside itself (${
          message(error)
        }); ${remedy}`,
      );
    }
    const [a, b] = [expected.dataSync()[0]!, got.dataSync()[0]!];
    if (!Object.is(a, b) && !(Math.abs(a - b) <= 1e-6 * Math.abs(a))) {
      throw new TypeError(
        `Cannot send ${what} "${label}" to a worker: on its own it gives ${b} for ${a}; ${remedy}`,
      );
    }
    if (what !== "loss") return;
    try {
      tf.grad((predictions) => tf.mean(alone(sample(), predictions)))(sample());
    } catch (error) {
      throw new TypeError(
        `Cannot train on loss "${label}": no gradient flows through it to the predictions, its second argument ` +
          `(${message(error)})`,
      );
    }
  });
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Functions in modules, replaced by stand-ins of their name: the caller's model does not run them. */
export function localFunctions(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(localFunctions);
  const { module, name } = value as { module?: unknown; name?: unknown };
  if (typeof module === "string" && typeof name === "string") {
    const standIn: LossFunction = () => {
      throw new Error(`"${name}" runs in workers: use the trainer's methods`);
    };
    return Object.defineProperty(standIn, "name", { value: name });
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, localFunctions(item)]));
}
