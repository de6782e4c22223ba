/** Lets one setup at a time work in a cache. @module */
import { join } from "node:path";
import { SetupError } from "./wheel.ts";

/** Milliseconds between two tries. */
const RETRY_MS = 200;

/**
 * Takes the cache's lock, waiting for whoever has it. It is a lock of the system's on an open file
 * (`flock`): it goes when its holder ends, however it ends, so that a stale one cannot be. The file stays;
 * it holds its last holder's process number.
 *
 * @param cache a folder that exists
 * @param onWait hears once, before it waits, for whom
 * @returns the lock; disposing of it lets it go
 * @throws {SetupError} if the lock's file cannot be opened, or the file system knows no locks
 */
export async function lockCache(
  cache: string,
  signal: AbortSignal | undefined,
  onWait: (holder: string) => void,
): Promise<Disposable> {
  const path = join(cache, ".setup.lock");
  const file = openLock(path);
  try {
    let told = false;
    while (!await tryLock(file, path)) {
      if (!told) onWait(`process ${Deno.readTextFileSync(path).trim() || "unknown"}`);
      told = true;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      signal?.throwIfAborted();
    }
    file.truncateSync();
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return file; // closing it lets the lock go
  } catch (error) {
    file.close();
    throw error;
  }
}

function openLock(path: string): Deno.FsFile {
  try {
    return Deno.openSync(path, { read: true, write: true, create: true });
  } catch (error) {
    throw cannotLock(path, error);
  }
}

async function tryLock(file: Deno.FsFile, path: string): Promise<boolean> {
  try {
    return await file.tryLock(true);
  } catch (error) {
    throw cannotLock(path, error);
  }
}

function cannotLock(path: string, error: unknown): SetupError {
  return new SetupError(
    `Cannot lock ${path}: ${
      (error as Error).message
    }: set STAGGER_CACHE to a folder of your own on a local disk`,
  );
}
