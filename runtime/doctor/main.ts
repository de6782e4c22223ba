/** The command `deno task doctor`: prints what this machine has and lacks. @module */
import { parseArgs } from "node:util";
import { examine } from "./doctor.ts";
import { formatReport } from "./text.ts";

const HELP =
  `Shows what Stagger finds on this machine: versions, processor, cores, memory, libtensorflow, NVIDIA GPUs,
which engine and devices it would use, and what to do about what is missing.

Usage: deno task doctor [options]

  --json  Print it as JSON
  --help  Show this text

Exit code: 0 if an engine works, 1 if none does, 2 wrong arguments.
`;

Deno.exitCode = await main();

async function main(): Promise<number> {
  let json: boolean;
  try {
    const { values } = parseArgs({
      args: Deno.args.filter((arg) => arg !== "--"), // deno task hands it on
      options: {
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) {
      console.log(HELP.trimEnd());
      return 0;
    }
    json = values.json;
  } catch (error) {
    console.error(`${(error as Error).message}\nRun "deno task doctor --help" for the options`);
    return 2;
  }
  const report = await examine();
  console.log(json ? JSON.stringify(report, null, 2) : formatReport(report));
  return report.engine === undefined ? 1 : 0;
}
