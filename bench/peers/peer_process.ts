/** A Python process that takes an order a line and answers each with a line of JSON. @module */
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";

/** The process. */
export class PeerProcess {
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncGenerator<string>;
  readonly #lastWords: Promise<string>;

  private constructor(child: Deno.ChildProcess) {
    this.#child = child;
    this.#writer = child.stdin.getWriter();
    this.#lines = lines(child.stdout);
    this.#lastWords = lastWords(child.stderr);
  }

  /**
   * Starts `script`, a file beside this one, and waits until it says that it is ready.
   *
   * @throws {Error} if Python or torch is not there, with what it said
   */
  static async start(
    python: string,
    script: string,
    options: Readonly<Record<string, string | number>>,
  ): Promise<PeerProcess> {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const all = Object.entries({ ...options, port: freePort() });
    const child = new Deno.Command(python, {
      args: [path, ...all.flatMap(([key, value]) => [`--${key}`, String(value)])],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      cwd: tmpdir(),
    }).spawn();
    const peer = new PeerProcess(child);
    try {
      await peer.#answer();
    } catch (error) {
      peer.stop();
      throw new Error(
        `Cannot start torch with ${python}: ${(error as Error).message}; give a Python with torch`,
      );
    }
    return peer;
  }

  /** Sends an order and waits for its answer. */
  async order(line: string): Promise<unknown> {
    await this.#writer.write(new TextEncoder().encode(line + "\n"));
    return await this.#answer();
  }

  /** Ends the process. */
  stop(): void {
    this.#writer.close().catch(() => {});
    try {
      this.#child.kill();
    } catch {
      // it has ended by itself
    }
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`it ended without an answer${await this.#lastWords}`);
    return JSON.parse(value);
  }
}

/** The last line that a process wrote to standard error, after a colon. */
async function lastWords(stream: ReadableStream<Uint8Array>): Promise<string> {
  let last = "";
  for await (const line of lines(stream)) last = line.trim() || last;
  return last && `: ${last}`;
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return (listener.addr as Deno.NetAddr).port;
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}
