/** Devices by name: `cpu:0` is the first core that this process may use, `cuda:0` the first CUDA device. @module */
import { commandLine } from "./commands.ts";
import { allowedCores } from "./machine/machine.ts";
import type { WorkerDevice } from "./protocol.ts";
import { cudaState } from "./tensorflow/library/cuda.ts";

/** Most CPU devices taken when none are named: more stages than this seldom pay. */
const MAX_DEFAULT_CORES = 4;

/** The devices of this machine. */
export interface AvailableDevices {
  /** Cores that this process may use. */
  readonly cpu: readonly WorkerDevice[];
  /** CUDA devices, with their memory in bytes. */
  readonly cuda: readonly (WorkerDevice & { readonly memory: number })[];
}

/** Looks for devices. */
export function availableDevices(): AvailableDevices {
  return {
    cpu: allowedCores().map((core, i) => ({ name: `cpu:${i}`, kind: "cpu", index: core })),
    cuda: cudaState().devices.map(({ index, memory }) => ({
      name: `cuda:${index}`,
      kind: "cuda",
      index,
      memory,
    })),
  };
}

/**
 * Finds devices by name; without names, all CUDA devices, or else CPU cores.
 *
 * @throws {RangeError} for a name that this machine has not
 */
export function resolveDevices(
  names: readonly string[] | undefined,
  available: AvailableDevices = availableDevices(),
): WorkerDevice[] {
  const { cpu, cuda } = available;
  if (names === undefined) return cuda.length > 0 ? [...cuda] : cpu.slice(0, MAX_DEFAULT_CORES);
  if (names.length === 0) throw new RangeError("Cannot train on no device: name at least one, such as cpu:0");
  const all = [...cuda, ...cpu];
  return names.map((name) => {
    const device = all.find((d) => d.name === name);
    if (device) return device;
    throw new RangeError(
      `Cannot use device "${name}": this machine has ${all.map((d) => d.name).join(", ")}; ` +
        `"${commandLine("doctor")}" shows why others are missing`,
    );
  });
}
