/**
 * `deno doc --lint` for what `mod.ts` exports. It re-exports TensorFlow.js, whose own gaps are not ours: errors
 * in its files, and references to its types, are left out.
 */
const root = new URL("..", import.meta.url).pathname;
const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
  args: ["doc", "--lint", "mod.ts"],
  cwd: root,
  env: { NO_COLOR: "1" },
}).output();
const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);

const sources = new TextDecoder().decode(
  (await new Deno.Command("git", { args: ["ls-files", "*.ts"], cwd: root }).output()).stdout,
).trim().split("\n").map((file) => Deno.readTextFileSync(root + file)).join("\n");

const blocks = text.split(/^(?=error\[)/m).filter((block) => block.startsWith("error["));
if (blocks.length === 0) {
  console.error(`deno doc --lint gave nothing to read:\n${text}`);
  Deno.exit(1);
}
const ours = blocks.filter((block) => {
  const place = /--> (\S+?):\d+:\d+/.exec(block)?.[1] ?? "";
  if (!place.startsWith(root) || place === `${root}deps.ts`) return false; // deps.ts holds nothing of ours
  const type = /references private type '(\w+)'/.exec(block)?.[1];
  return type === undefined || new RegExp(`\\b(class|interface|type|const|enum) ${type}\\b`).test(sources);
});
for (const block of ours) console.error(block.split("\n").slice(0, 4).join("\n"));
console.error(
  `doc lint: ${ours.length} errors of ours, ${blocks.length - ours.length} of TensorFlow.js left out`,
);
if (ours.length > 0) Deno.exit(1);
