/** `mod.ts` imported by URL trains from an empty folder: nothing of the repository is at hand there. */
import assert from "node:assert/strict";
import { hasTensorflow } from "./trainer/engine.ts";

const ROOT = new URL("../", import.meta.url);
const FLAGS = [
  "--allow-read",
  "--allow-write",
  "--allow-env",
  "--allow-ffi",
  "--allow-run",
  "--allow-sys",
  "--allow-net",
];

const SCRIPT = `
import { dice, distribute, tf } from "URL/mod.ts";
const x = tf.randomNormal([16, 6], 0, 1, "float32", 1);
const y = tf.sum(x, 1, true);
const model = tf.sequential({
  layers: [
    tf.layers.dense({ name: "first", units: 8, activation: "tanh", inputShape: [6] }),
    tf.layers.dense({ name: "second", units: 1 }),
  ],
});
const trainer = await distribute(model, { strategy: "pipeline", devices: ["cpu:0", "cpu:0"], microBatches: 2, engine: "ENGINE" });
trainer.compile({ optimizer: tf.train.momentum(0.05, 0.9), loss: "meanSquaredError", metrics: [dice] });
const history = await trainer.fit(x, y, { batchSize: 8, epochs: 20 });
await trainer.dispose();
const [first, last] = [history.history.loss[0], history.history.loss.at(-1)];
const learned = last < first * 0.5 && history.history.dice.at(-1) > 0.5;
console.log(learned ? "learned" : \`loss went from \${first} to \${last}\`);
`;

/** Serves the repository's TypeScript, as a file host does. */
function serve() {
  return Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const path = new URL(request.url).pathname;
    try {
      const text = await Deno.readTextFile(new URL("." + path, ROOT));
      return new Response(text, { headers: { "content-type": "application/typescript" } });
    } catch {
      return new Response("not found", { status: 404 });
    }
  });
}

for (const engine of ["tensorflow", "wasm"]) {
  const ignore = engine === "tensorflow" && !hasTensorflow;
  Deno.test({ name: `mod.ts imported by URL trains from an empty folder (${engine})`, ignore }, async () => {
    await using server = serve();
    const host = `127.0.0.1:${server.addr.port}`;
    const folder = await Deno.makeTempDir();
    const script = `${folder}/train.ts`;
    await Deno.writeTextFile(script, SCRIPT.replace("URL", `http://${host}`).replace("ENGINE", engine));
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "--quiet",
        "--no-check",
        `--reload=http://${host}`,
        `--allow-import=${host}`,
        ...FLAGS,
        script,
      ],
      cwd: folder,
      env: { NO_COLOR: "1" },
    }).output();
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assert.deepEqual({ code, out, err }, { code: 0, out: "learned\n", err: "" });
    assert.deepEqual(
      [...Deno.readDirSync(folder)].map(({ name }) => name),
      ["train.ts"],
      "nothing else is written",
    );
    await Deno.remove(folder, { recursive: true });
  });
}
