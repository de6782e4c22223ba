/** Checks of what a caller gives, whose errors name the value, what is expected and the remedy. @module */

/** A value as an error shows it: text in quotes, long ones cut. */
export function shown(value: unknown): string {
  if (typeof value === "function") return `function ${value.name || "without a name"}`;
  if (typeof value !== "object" || value === null) {
    return typeof value === "string" ? JSON.stringify(value) : String(value);
  }
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return `an object of ${Object.keys(value).slice(0, 5).join(", ") || "nothing"}`;
}

/** @throws {TypeError} if options are no object, or have a key that is not known */
export function checkKeys(what: string, options: unknown, known: Iterable<string>): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(
      `Cannot use ${shown(options)} as ${what}: expected an object of ${[...known].join(", ")}`,
    );
  }
  const names = new Set(known);
  for (const [key, value] of Object.entries(options)) {
    if (value !== undefined && !names.has(key)) {
      throw new TypeError(`Cannot use option "${key}" of ${what}: expected some of ${[...names].join(", ")}`);
    }
  }
}

/** @throws {RangeError} for a value that is given and no integer from `least` */
export function checkInteger(what: string, value: unknown, least: number): void {
  if (value !== undefined && (!Number.isInteger(value) || (value as number) < least)) {
    throw new RangeError(`Cannot use ${what} ${shown(value)}: expected an integer >= ${least}`);
  }
}

/** @throws {TypeError} for a value that is given and neither true nor false */
export function checkBoolean(what: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean") {
    throw new TypeError(`Cannot use ${what} ${shown(value)}: expected true or false`);
  }
}

/** @throws {RangeError} for a value that is not among those allowed */
export function checkOneOf(what: string, value: unknown, allowed: readonly string[]): void {
  if (!allowed.includes(value as string)) {
    throw new RangeError(`Cannot use ${what} ${shown(value)}: expected one of ${allowed.join(", ")}`);
  }
}

/** @throws {TypeError} for a value that is given and no array of texts */
export function checkTexts(what: string, value: unknown, example: string): void {
  if (value === undefined) return;
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) {
    throw new TypeError(`Cannot use ${what} ${shown(value)}: expected an array of texts, such as ${example}`);
  }
}
