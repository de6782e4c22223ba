/** The devices of a comparison. @module */
import { availableDevices, resolveDevices } from "../runtime/devices.ts";

/** Devices taken when none are named: the published comparison has two. */
const DEFAULT_DEVICES = 2;

/** Names of the devices to compare on. @throws {RangeError} for one that the machine does not have */
export function benchDevices(devices: readonly string[] | undefined): string[] {
  const found = resolveDevices(devices, availableDevices()).map(({ name }) => name);
  return devices ? found : found.slice(0, DEFAULT_DEVICES);
}
