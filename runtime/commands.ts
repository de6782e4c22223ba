/** How a person runs Stagger's own commands. @module */
import { fileURLToPath } from "node:url";

const SCRIPTS = { setup: "./tensorflow/setup/main.ts", doctor: "./doctor/main.ts" } as const;

/** A command as text: a task inside of a checkout, the script itself elsewhere and where Stagger is a URL. */
export function commandLine(name: keyof typeof SCRIPTS, options = ""): string {
  const script = new URL(SCRIPTS[name], import.meta.url);
  const more = options === "" ? "" : ` ${options}`;
  if (script.protocol !== "file:") return `deno run -A ${script}${more}`;
  const root = fileURLToPath(new URL("../", import.meta.url));
  const inside = `${Deno.cwd()}/`.startsWith(root);
  return inside ? `deno task ${name}${more}` : `deno run -A ${fileURLToPath(script)}${more}`;
}
