/** PyTorch on the same machine, a step at a time, in the same rounds. @module */
import { median } from "../median.ts";
import type { Progress } from "../../cli/progress.ts";
import type { StepResults } from "../results.ts";
import { PeerProcess } from "./peer_process.ts";

/** What the peers are given. */
export interface TorchOptions {
  readonly model: "resnet50" | "unet";
  readonly size: number;
  readonly batch: number;
  readonly microBatches: number;
  /** How many stages, or replicas. */
  readonly devices: number;
  /** Whether to start a pipeline too. */
  readonly pipeline: boolean;
  /** Whether to start DistributedDataParallel too. */
  readonly dataParallel: boolean;
}

/** Children of the model before which its pipeline may be cut: the residual blocks. */
const FIRST_BLOCK = 4;
const LAST_BLOCK = 19;
/** Where the search for torch's best cut begins, as a share of the blocks. */
const CUTS_TRIED = [7, 8, 9, 10, 11, 12];

/**
 * Starts `torch single` and, where they are wanted and there are several devices, `torch ddp` and (of two)
 * `torch pipeline` at its best cut.
 */
export async function startTorchPeers(
  python: string,
  options: TorchOptions,
  progress: Progress,
): Promise<TorchPeer[]> {
  progress.tick(0.05, "torch single");
  const single = await TorchPeer.start(python, "torch single", "single", options);
  const peers = [single];
  await single.step(false);
  if (options.dataParallel && options.devices > 1) {
    progress.tick(0.1, "torch ddp");
    const ddp = await TorchPeer.start(python, "torch ddp", "ddp", options);
    await ddp.step(false);
    peers.push(ddp);
  }
  if (!options.pipeline || options.devices !== 2) return peers;
  const pipeline = await TorchPeer.start(python, "torch pipeline", "pipeline", options);
  let best = { cut: 0, seconds: Infinity };
  for (const [i, cut] of CUTS_TRIED.entries()) {
    if (cut < FIRST_BLOCK || cut > LAST_BLOCK) continue;
    progress.tick((i + 1) / (CUTS_TRIED.length + 1), `torch pipeline, cut before block ${cut - FIRST_BLOCK}`);
    await pipeline.order(`cut ${cut}`); // builds anew and warms up
    const { seconds } = await pipeline.order("step");
    if (seconds < best.seconds) best = { cut, seconds };
  }
  await pipeline.order(`cut ${best.cut}`);
  return [...peers, pipeline];
}

/** @throws {Error} if there is no such Python, or it has no torch: before any work */
export async function checkTorch(python: string): Promise<void> {
  const program = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
  const command = new Deno.Command(python, { args: ["-c", program], stdout: "null", stderr: "null" });
  let found: boolean;
  try {
    found = (await command.output()).success;
  } catch (error) {
    throw new Error(
      `Cannot use --torch ${python}: ${(error as Error).message}; give the path of a Python with torch`,
    );
  }
  if (!found) {
    throw new Error(`Cannot use --torch ${python}: it has no torch; give the path of a Python with torch`);
  }
}

/** One PyTorch process that trains. */
export class TorchPeer {
  readonly #rounds: number[] = [];
  readonly #process: PeerProcess;
  #loss = NaN;

  private constructor(readonly name: string, process: PeerProcess, readonly batch: number) {
    this.#process = process;
  }

  /** @throws {Error} if Python or torch is not there, with what it said */
  static async start(python: string, name: string, mode: string, options: TorchOptions): Promise<TorchPeer> {
    const { model, size, batch, microBatches, devices } = options;
    const args = { model, mode, size, batch, micro: microBatches, devices };
    return new TorchPeer(name, await PeerProcess.start(python, "./torch_peer.py", args), batch);
  }

  /** Sends an order and waits for its answer. */
  async order(word: string): Promise<{ seconds: number }> {
    return await this.#process.order(word) as { seconds: number };
  }

  /** One step. */
  async step(counted = true): Promise<void> {
    const { seconds, loss } = await this.order("step") as { seconds: number; loss?: number };
    this.#loss = loss ?? NaN;
    if (counted) this.#rounds.push(seconds);
  }

  /** Seconds of each round. */
  get rounds(): readonly number[] {
    return this.#rounds;
  }

  /** Forgets what came after so many rounds: another did not finish them. */
  keep(rounds: number): void {
    this.#rounds.length = rounds;
  }

  /** What was measured, against the rounds of `single`. */
  result(single: readonly number[] | undefined): StepResults {
    const seconds = median(this.#rounds);
    const speedup = single ? median(this.#rounds.map((s, i) => single[i]! / s)) : NaN;
    return {
      secondsPerStep: seconds,
      rounds: this.#rounds,
      imagesPerSecond: this.batch / seconds,
      speedup,
      gainPercent: (speedup - 1) * 100,
      loss: this.#loss,
    };
  }

  /** Ends the process. */
  stop(): void {
    this.#process.stop();
  }
}
