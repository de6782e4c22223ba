/**
 * What NVIDIA's driver says about this machine: whether it is there, how many CUDA devices, their names and
 * memory. Never fails without a driver.
 *
 * Tests stand a small library in for the driver. How the real one answers (a driver too old or mixed with
 * another's kernel module, devices that are hidden or partitioned) can only be seen on a machine with a GPU.
 * @module
 */
import { delimiter, join } from "node:path";
import { readSystemFile } from "../../machine/system_file.ts";
import { exists } from "./cache.ts";
import { cstring } from "../binding/cstring.ts";
import { systemFolders } from "./system_folders.ts";

/** One CUDA device. */
export interface CudaDevice {
  /** Number that CUDA gives it: `cuda:<index>`. */
  readonly index: number;
  readonly name: string;
  /** Bytes of memory. */
  readonly memory: number;
}

/** What the driver says. */
export interface CudaState {
  /** Whether there is a driver. */
  readonly driver: boolean;
  /** The newest CUDA version that the driver takes, such as "12.8". */
  readonly cudaVersion?: string;
  /** Empty without a driver, and where `CUDA_VISIBLE_DEVICES` hides all. */
  readonly devices: readonly CudaDevice[];
  /** Why a driver that is there gives no devices. */
  readonly problem?: string;
}

/** The driver's library, found by the system's loader. */
const DRIVER = "libcuda.so.1";

/**
 * Whether there is an NVIDIA driver: its kernel module, its library or its tool. Looks at files alone,
 * within a millisecond or two; {@linkcode cudaState} asks the driver itself.
 */
export function hasNvidiaDriver(): boolean {
  if (Deno.build.os !== "linux") return false;
  if (readSystemFile("/proc/driver/nvidia/version") !== undefined) return true;
  if (systemFolders().some((folder) => exists(join(folder, DRIVER)))) return true;
  const path = (Deno.env.get("PATH") ?? "").split(delimiter).filter((folder) => folder !== "");
  return path.some((folder) => exists(join(folder, "nvidia-smi")));
}

const symbols = {
  cuInit: { parameters: ["u32"], result: "i32" },
  cuDriverGetVersion: { parameters: ["buffer"], result: "i32" },
  cuDeviceGetCount: { parameters: ["buffer"], result: "i32" },
  cuDeviceGet: { parameters: ["buffer", "i32"], result: "i32" },
  cuDeviceGetName: { parameters: ["buffer", "i32", "i32"], result: "i32" },
  cuDeviceTotalMem_v2: { parameters: ["buffer", "i32"], result: "i32" },
  cuGetErrorString: { parameters: ["i32", "buffer"], result: "i32" },
} as const;

type Driver = Deno.StaticForeignLibraryInterface<typeof symbols>;

/**
 * Asks the driver. The first call starts it, which may take a second where there are many devices.
 *
 * @param library the driver's library, by name or path
 */
export function cudaState(library: string = DRIVER): CudaState {
  const driver = openDriver(library);
  if (driver === undefined) {
    if (!hasNvidiaDriver()) return { driver: false, devices: [] };
    return { driver: true, devices: [], problem: `Cannot load ${library}, though NVIDIA's driver is there` };
  }
  const int = new Int32Array(1);
  const check = (what: string, code: number) => {
    if (code !== 0) throw new Error(`${what}: ${errorText(driver, code)}`);
  };
  const devices: CudaDevice[] = [];
  let cudaVersion: string | undefined;
  try {
    if (driver.cuDriverGetVersion(int) === 0) {
      cudaVersion = `${Math.floor(int[0]! / 1000)}.${Math.floor(int[0]! % 1000 / 10)}`;
    }
    check("Cannot start NVIDIA's driver", driver.cuInit(0));
    check("Cannot count CUDA devices", driver.cuDeviceGetCount(int));
    const count = int[0]!;
    for (let index = 0; index < count; index++) {
      check(`Cannot open CUDA device ${index}`, driver.cuDeviceGet(int, index));
      const device = int[0]!;
      const name = new Uint8Array(256);
      check(`Cannot name CUDA device ${index}`, driver.cuDeviceGetName(name, name.length, device));
      const memory = new BigUint64Array(1);
      check(`Cannot size CUDA device ${index}`, driver.cuDeviceTotalMem_v2(memory, device));
      devices.push({
        index,
        name: new TextDecoder().decode(name.subarray(0, name.indexOf(0))),
        memory: Number(memory[0]),
      });
    }
  } catch (error) {
    return { driver: true, cudaVersion, devices, problem: (error as Error).message };
  }
  return { driver: true, cudaVersion, devices };
}

const RTLD_NOW = 0x2;
const RTLD_NODELETE = 0x1000;

/**
 * Loads the driver for good: Deno closes its libraries when it ends, while the driver's threads and exit
 * handlers stay.
 */
function openDriver(library: string): Driver | undefined {
  if (Deno.build.os !== "linux") return undefined;
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") return undefined;
  const libc = Deno.dlopen("libc.so.6", { dlopen: { parameters: ["buffer", "i32"], result: "pointer" } });
  const loaded = libc.symbols.dlopen(cstring(library), RTLD_NOW | RTLD_NODELETE) !== null;
  libc.close();
  if (!loaded) return undefined;
  try {
    return Deno.dlopen(library, symbols).symbols;
  } catch {
    return undefined; // a library of this name that is not the driver
  }
}

function errorText(driver: Driver, code: number): string {
  const text = new BigUint64Array(1);
  if (driver.cuGetErrorString(code, text) !== 0) return `error ${code}`;
  const pointer = Deno.UnsafePointer.create(text[0]!);
  return `${pointer === null ? "unknown" : Deno.UnsafePointerView.getCString(pointer)} (error ${code})`;
}
