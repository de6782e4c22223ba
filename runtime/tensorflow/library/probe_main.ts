/** Loads libtensorflow and prints what it says of itself, as one line of JSON. Run by `probe.ts`. @module */
import { Context } from "../binding/context.ts";

let answer: { version?: string; devices?: string[]; fault?: string };
try {
  const context = new Context({ libraries: JSON.parse(Deno.args[0] ?? "{}"), device: "cpu" });
  // "/job:localhost/replica:0/task:0/device:GPU:0"
  const devices = context.devices().map((name) => name.replace(/^.*\/device:/, ""));
  answer = { version: context.version, devices };
} catch (error) {
  answer = { fault: (error as Error).message };
}
console.log(JSON.stringify(answer));
