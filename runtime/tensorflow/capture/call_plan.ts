/** Where a captured function's inputs are found at each call, worked out once. @module */
import type { CapturedFunction } from "./captured_function.ts";
import { CaptureError } from "../binding/graph_tensor.ts";
import { EXTRA, type Frame, type FrameLayout, HANDED, SAVED } from "./frame.ts";

/** The inputs of one function. */
export class CallPlan {
  /** Handles of variables, and room for the others. */
  readonly #inputs: BigUint64Array<ArrayBuffer>;
  /** Four numbers for each input that changes: its position, its place, its index there, its replica. */
  readonly #moving: Uint32Array;

  constructor(readonly f: CapturedFunction, layout: FrameLayout) {
    const handed = new Map(layout.arguments.map((argument, i) => [argument, i]));
    const saved = new Map(layout.saved.map((tensor, i) => [tensor, i]));
    const extra = new Map(layout.extra.map((tensor, i) => [tensor, i]));
    const moving: number[] = [];
    this.#inputs = new BigUint64Array(f.inputs.length);
    f.inputs.forEach(({ source, replica }, at) => {
      if (source.kind === "variable") {
        this.#inputs[at] = source.variable.handle;
        return;
      }
      const [place, index] = source.kind === "argument"
        ? [HANDED, handed.get(source)]
        : saved.has(source.tensor)
        ? [SAVED, saved.get(source.tensor)]
        : [EXTRA, extra.get(source.tensor)];
      if (index === undefined) {
        throw new CaptureError(`needs a value that nobody keeps (input ${at} of ${f.name})`);
      }
      moving.push(at, place, index, replica);
    });
    this.#moving = Uint32Array.from(moving);
  }

  /** Whether the function reads a value of a frame. */
  reads(place: number, index: number): boolean {
    const moving = this.#moving;
    for (let i = 0; i < moving.length; i += 4) {
      if (moving[i + 1] === place && moving[i + 2] === index) return true;
    }
    return false;
  }

  /** Runs the function over one frame, or over one per replica. */
  call(frames: readonly Frame[]): BigUint64Array<ArrayBuffer> {
    const inputs = this.#inputs;
    const moving = this.#moving;
    for (let i = 0; i < moving.length; i += 4) {
      inputs[moving[i]!] = frames[moving[i + 3]!]![moving[i + 1]!]![moving[i + 2]!]!;
    }
    return this.f.call(inputs);
  }
}
