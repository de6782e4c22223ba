/** Copies out of plain memory as an engine does: with the C library's memcpy where there is one. @module */
import type { Contribution } from "../../ring/group.ts";
import { openLibc } from "../../runtime/tensorflow/library/libc.ts";

/** Parts of an array. */
export class Copier implements Contribution {
  readonly #values: Float32Array<ArrayBuffer>;
  readonly #memcpy: ((target: Float32Array, from: number) => void) | undefined;

  constructor(values: Float32Array<ArrayBuffer>) {
    this.#values = values;
    if (Deno.build.os !== "linux") return;
    const { memcpyOut } = openLibc();
    const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(values));
    this.#memcpy = (target, from) =>
      void memcpyOut(
        target as Float32Array<ArrayBuffer>,
        address + BigInt(4 * from),
        BigInt(target.byteLength),
      );
  }

  read(from: number, target: Float32Array): void {
    if (this.#memcpy) this.#memcpy(target, from);
    else target.set(this.#values.subarray(from, from + target.length));
  }
}
