/** Where a captured function's inputs are found at each call, worked out once. @module */
import { type Argument, CaptureError, type GraphTensor } from "./graph_recorder.ts";
import type { CapturedFunction } from "./captured_function.ts";

/** Values that belong to one micro-batch, as handles; 0 where there is none. */
export interface Frame {
  readonly arguments: BigUint64Array<ArrayBuffer>;
  /** What F left for the backward. */
  saved: BigUint64Array<ArrayBuffer>;
  /** What B left for W. */
  extra: BigUint64Array<ArrayBuffer>;
}

/** Places that values of a frame are numbered by. */
export interface FrameLayout {
  readonly arguments: readonly Argument[];
  readonly saved: readonly GraphTensor[];
  readonly extra: readonly GraphTensor[];
}

type Place = "arguments" | "saved" | "extra";

/** The inputs of one function. */
export class CallPlan {
  readonly #fixed: BigUint64Array<ArrayBuffer>;
  readonly #moving: {
    readonly at: number;
    readonly place: Place;
    readonly index: number;
    readonly replica: number;
  }[] = [];

  constructor(readonly f: CapturedFunction, layout: FrameLayout) {
    this.#fixed = new BigUint64Array(f.inputs.length);
    f.inputs.forEach(({ source, replica }, at) => {
      if (source.kind === "variable") {
        this.#fixed[at] = source.variable.handle;
        return;
      }
      const place: Place = source.kind === "argument"
        ? "arguments"
        : layout.saved.includes(source.tensor)
        ? "saved"
        : "extra";
      const index = source.kind === "argument"
        ? layout.arguments.indexOf(source)
        : layout[place as "saved" | "extra"].indexOf(source.tensor);
      if (index < 0) throw new CaptureError(`needs a value that nobody keeps (input ${at} of ${f.name})`);
      this.#moving.push({ at, place, index, replica });
    });
  }

  /** Whether the function reads a value of a frame. */
  reads(place: Place, index: number): boolean {
    return this.#moving.some((m) => m.place === place && m.index === index);
  }

  /** Runs the function over one frame, or over one per replica. */
  call(frames: readonly Frame[]): BigUint64Array<ArrayBuffer> {
    const inputs = this.#fixed;
    for (const { at, place, index, replica } of this.#moving) inputs[at] = frames[replica]![place][index]!;
    return this.f.call(inputs);
  }
}
