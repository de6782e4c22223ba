/** Runs `deno task conformance` as a person does. Not a test. @module */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import type { Report } from "../../conformance/report/report.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** How a run ended. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it with the permissions that the task has. */
export async function conformance(args: readonly string[]): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "conformance", ...args],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** Runs it and reads what it knows of every spec. */
export async function report(args: readonly string[]): Promise<Ended & { readonly report: Report }> {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    const ended = await conformance([...args, "--json", file]);
    const text = await Deno.readTextFile(file);
    assert.notEqual(text, "", `no report: ${ended.stderr}`);
    return { ...ended, report: JSON.parse(text) };
  } finally {
    await Deno.remove(file);
  }
}
