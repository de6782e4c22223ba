/** The display of progress. @module */
// deno-lint-ignore-file no-control-regex
import assert from "node:assert/strict";
import { createProgress } from "../../cli/progress.ts";

/** A stream and a clock that the test moves. */
function stage(terminal: boolean) {
  const decoder = new TextDecoder();
  let text = "";
  let ms = 0;
  return {
    stream: {
      isTerminal: () => terminal,
      writeSync(bytes: Uint8Array) {
        text += decoder.decode(bytes);
        return bytes.length;
      },
    },
    now: () => ms,
    wait(more: number) {
      ms += more;
    },
    /** What was written since the last call. */
    take() {
      const taken = text;
      text = "";
      return taken;
    },
  };
}

Deno.test("createProgress() says at once that it began", () => {
  for (const terminal of [false, true]) {
    const scene = stage(terminal);
    using _progress = createProgress(scene);
    assert.match(scene.take(), /0 %/);
  }
});

Deno.test("createProgress() writes whole lines without control codes where there is no terminal", () => {
  const scene = stage(false);
  using progress = createProgress({ ...scene, total: 4 });
  progress.phase("capture", 1);
  progress.phase("pipeline 1f1b", 3);
  scene.wait(10_000);
  progress.tick([1, 2], "round 1\nof 2");
  progress.log("a note");
  progress.done();
  assert.deepEqual(scene.take().split("\n"), [
    "  0 %  starting",
    "  0 %  capture",
    " 25 %  ETA 0:00  pipeline 1f1b",
    " 62 %  ETA 0:10  pipeline 1f1b: round 1 of 2",
    "a note",
    "100 %  done in 0:10",
    "",
  ]);
});

Deno.test("createProgress() writes a line every few seconds at most, but for a new phase", () => {
  const scene = stage(false);
  using progress = createProgress(scene);
  progress.phase("first", 0.5);
  scene.take();
  for (let i = 1; i <= 100; i++) {
    scene.wait(100);
    progress.tick([i, 100], `step ${i}`);
  }
  assert.deepEqual(scene.take().match(/step \d+/g), ["step 50", "step 100"]);
  progress.phase("second", 0.5);
  assert.match(scene.take(), /second/);
});

Deno.test("createProgress() draws four frames a second at most on a terminal, each over the last", () => {
  const scene = stage(true);
  using progress = createProgress(scene);
  progress.phase("steps", 1);
  scene.take();
  for (let i = 1; i <= 100; i++) {
    scene.wait(20);
    progress.tick([i, 100]);
  }
  const frames = scene.take();
  assert.ok(!frames.includes("\n"));
  assert.ok(frames.split("\r").length - 1 <= 8, "in two seconds");
  assert.match(frames, /\r█+░* +\d+ %.*\x1b\[K$/);
});

Deno.test("createProgress() prints log lines above the bar and leaves the terminal on a new line", () => {
  const scene = stage(true);
  const progress = createProgress(scene);
  scene.take();
  progress.log("a note");
  assert.match(scene.take(), /^\r\x1b\[Ka note\n\r░+ +0 %/);
  progress.done();
  assert.match(scene.take(), /100 %.*\n$/);
  progress.tick(0.5);
  progress.done();
  assert.equal(scene.take(), "");
});

Deno.test("createProgress() estimates the end by the weights, then by the phase's own pace", () => {
  const scene = stage(false);
  const eta = () => scene.take().match(/ETA (\S+)/)?.[1];
  using progress = createProgress({ ...scene, total: 10 });
  progress.phase("quick", 2);
  scene.wait(20_000);
  progress.phase("slow", 8);
  assert.equal(eta(), "1:20", "8 weights at 10 s each");
  scene.wait(40_000);
  progress.tick(0.2);
  assert.equal(eta(), "2:40", "a fifth took 40 s");
  progress.phase("never", 0);
  progress.phase("another", 0);
  assert.equal(eta(), "0:00", "nothing is left");
});

Deno.test("createProgress() estimates the end without the time of phases that have no weight", () => {
  const scene = stage(false);
  using progress = createProgress({ ...scene, total: 10 });
  progress.phase("fetching", 0);
  scene.wait(600_000);
  progress.tick(0.5);
  assert.doesNotMatch(scene.take(), /ETA/, "nothing is known yet");
  progress.phase("quick", 2);
  scene.wait(20_000);
  progress.phase("slow", 8);
  assert.match(scene.take(), /ETA 1:20 {2}slow\n$/, "8 weights at 10 s each");
});

Deno.test("createProgress() survives a stream that nobody reads, and odd ticks", () => {
  const broken = {
    isTerminal: () => true,
    writeSync(): number {
      throw new Deno.errors.BrokenPipe("gone");
    },
  };
  using progress = createProgress({ stream: broken });
  progress.phase("a", 1);
  progress.tick([0, 0]);
  progress.tick(7);
  assert.throws(() => createProgress({ total: 0 }), RangeError);
});

Deno.test("createProgress() keeps no process alive and leaves standard output clean", async () => {
  const module = new URL("../../cli/progress.ts", import.meta.url).href;
  const code =
    `import { createProgress } from "${module}"; createProgress().phase("begun", 1); console.log("result");`;
  const { code: status, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-lock", "--quiet", code],
    signal: AbortSignal.timeout(20_000),
  }).output();
  assert.equal(status, 0);
  assert.equal(new TextDecoder().decode(stdout), "result\n");
  assert.equal(new TextDecoder().decode(stderr), "  0 %  starting\n  0 %  begun\n");
});
