/** Checks of the options that models are built from. @module */

/** A model, as errors name it. */
export type ModelName = "ResNet50" | "U-Net";

/** @throws {TypeError} for an option that is not known */
export function checkKnown(model: ModelName, options: object, known: readonly string[]): void {
  if (typeof (options as unknown) !== "object" || options === null) {
    throw new TypeError(
      `Cannot build ${model}: expected options with "inputShape": got ${show(options)}; ` +
        `give the size of the images, as in { inputShape: [224, 224, 3] }`,
    );
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(
      `Cannot build ${model}: expected some of ${known.join(", ")}: got "${unknown}"; leave it out`,
    );
  }
}

/** @throws {TypeError | RangeError} if it is not `[height, width, channels]`, each from 1 */
export function checkInputShape(model: ModelName, inputShape: unknown): void {
  if (!Array.isArray(inputShape) || inputShape.length !== 3) {
    throw new TypeError(
      `Cannot build ${model}: expected "inputShape" to be [height, width, channels], without the batch: ` +
        `got ${show(inputShape)}; give the size of the images, as in [224, 224, 3]`,
    );
  }
  inputShape.forEach((size, axis) => {
    const what = ["height", "width", "channels"][axis];
    checkCount(
      model,
      size,
      `the ${what} of "inputShape"`,
      `give the size of the images, as in [224, 224, 3]`,
    );
  });
}

/** @throws {TypeError | RangeError} if it is not an integer from 1 */
export function checkCount(model: ModelName, value: unknown, what: string, remedy: string): void {
  if (typeof value !== "number") {
    throw new TypeError(
      `Cannot build ${model}: expected ${what} to be a number: got ${show(value)}; ${remedy}`,
    );
  }
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new RangeError(
      `Cannot build ${model}: expected ${what} to be an integer from 1: got ${value}; ${remedy}`,
    );
  }
}

/** @throws {RangeError} if it is none of them */
export function checkChoice(
  model: ModelName,
  value: unknown,
  what: string,
  { choices, remedy }: { choices: readonly string[]; remedy: string },
): void {
  if (choices.includes(value as string)) return;
  const expected = choices.map((choice) => `"${choice}"`).join(" or ");
  throw new RangeError(
    `Cannot build ${model}: expected "${what}" ${expected}: got ${show(value)}; ${remedy}`,
  );
}

/** @throws {TypeError} if it is not a string of a character or more */
export function checkName(model: ModelName, name: unknown): void {
  if (typeof name === "string" && name !== "") return;
  throw new TypeError(
    `Cannot build ${model}: expected "name" to be a string of a character or more: got ${show(name)}`,
  );
}

/** A value as a person would write it. */
function show(value: unknown): string {
  return typeof value === "object" || typeof value === "string" ? JSON.stringify(value) : String(value);
}
