/** The programs of a stage, by the workload that they were captured for. @module */
import { disposeProgram, type Program } from "./program.ts";

/** Programs kept; the one used longest ago makes room. */
const MAX_PROGRAMS = 16;

/** Keeps programs in the order of their use. */
export class ProgramCache {
  readonly #programs = new Map<string, Program>();

  has(key: string): boolean {
    return this.#programs.has(key);
  }

  /** The program of a workload, made if it is not there. */
  get(key: string, make: () => Program, busy: (program: Program) => boolean): Program {
    const known = this.#programs.get(key);
    const program = known ?? make();
    this.#programs.delete(key); // to the end: the order is that of use
    this.#programs.set(key, program);
    if (this.#programs.size > MAX_PROGRAMS) this.#evict((other) => other !== program && !busy(other));
    return program;
  }

  dispose(): void {
    for (const program of this.#programs.values()) disposeProgram(program);
    this.#programs.clear();
  }

  #evict(may: (program: Program) => boolean): void {
    for (const [key, program] of this.#programs) {
      if (!may(program)) continue;
      disposeProgram(program);
      this.#programs.delete(key);
      return;
    }
  }
}
