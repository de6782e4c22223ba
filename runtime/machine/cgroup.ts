/** What the control groups of this process allow it: processor time and memory. @module */
import { readSystemFile } from "./system_file.ts";

/** Reads a system file; tests give another. */
export type ReadFile = (path: string) => string | undefined;

const ROOT = "/sys/fs/cgroup";

/**
 * Processor time that this process may use, in cores: 1.5 is one and a half seconds of processor time a
 * second.
 *
 * @returns undefined without a limit
 */
export function cpuQuota(read: ReadFile = readSystemFile): number | undefined {
  const limits: number[] = [];
  for (const folder of foldersOf("cpu", read)) {
    const [quota, period] = folder.unified
      ? (read(`${folder.path}/cpu.max`) ?? "").split(/\s+/)
      : [read(`${folder.path}/cpu.cfs_quota_us`), read(`${folder.path}/cpu.cfs_period_us`)];
    const cores = Number(quota) / Number(period); // "max" is not a number, -1 not a limit
    if (cores > 0) limits.push(cores);
  }
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** Version 1 writes "no limit" as the largest multiple of a page below 2^63. */
const NO_LIMIT = 2 ** 60;

/**
 * Memory that this process may use, in bytes.
 *
 * @returns undefined without a limit
 */
export function memoryLimit(read: ReadFile = readSystemFile): number | undefined {
  const limits: number[] = [];
  for (const folder of foldersOf("memory", read)) {
    const bytes = Number(read(`${folder.path}/${folder.unified ? "memory.max" : "memory.limit_in_bytes"}`));
    if (bytes > 0 && bytes < NO_LIMIT) limits.push(bytes);
  }
  return limits.length === 0 ? undefined : Math.min(...limits);
}

interface Folder {
  readonly path: string;
  /** Version 2, in which one hierarchy holds every controller. */
  readonly unified: boolean;
}

/** This process's group and all groups around it: each of them may limit. */
function foldersOf(controller: string, read: ReadFile): Folder[] {
  const folders: Folder[] = [];
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers, group] = line.match(/^\d+:([^:]*):(\/.*)$/) ?? [];
    if (controllers === undefined || group === undefined) continue;
    const unified = controllers === "";
    if (!unified && !controllers.split(",").includes(controller)) continue;
    const names = group.split("/").filter((name) => name !== "");
    // Within a container the group's path may be the host's: its outer parts do not exist here, its root
    // does.
    for (let n = names.length; n >= 0; n--) {
      const path = [unified ? ROOT : `${ROOT}/${controllers}`, ...names.slice(0, n)].join("/");
      folders.push({ path, unified });
    }
  }
  return folders;
}
