/** What a command tells of an error. @module */

/** Its message; its stack too where STAGGER_DEBUG is set. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return Deno.env.get("STAGGER_DEBUG") ? error.stack ?? error.message : error.message;
}
