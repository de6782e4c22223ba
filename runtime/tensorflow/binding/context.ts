/** A TensorFlow eager context: where one worker's ops run. @module */
import { commandLine } from "../../commands.ts";
import { cstring } from "./cstring.ts";
import { type Libc, openLibc } from "../library/libc.ts";
import { type LibraryPaths, openTensorflow, type Tensorflow } from "../library/library.ts";
import { type Bytes, bytesField, concat, doubleField, varintField } from "./proto.ts";

/** Thrown when TensorFlow refuses a call. */
export class TensorflowError extends Error {
  override readonly name = "TensorflowError";
}

/** How a context computes. */
export interface ContextOptions {
  readonly libraries: LibraryPaths;
  /**
   * `cpu`: one core, the one that the calling thread is pinned to. `{ cuda: n }`: the CUDA device of that
   * number, counted as TensorFlow counts them.
   */
  readonly device: "cpu" | { readonly cuda: number };
  /** GPU: take memory as it is needed instead of all at once. Default: true. */
  readonly memoryGrowth?: boolean;
  /** GPU: share of a device's memory that this process may take, 0 to 1. */
  readonly memoryFraction?: number;
}

/** A context and the functions to use it with. Used by the worker that made it alone. */
export class Context {
  readonly c: Libc;
  readonly tf: Tensorflow;
  readonly pointer: bigint;
  /** Never shared between workers. */
  readonly status: bigint;
  /** Name that ops are placed on; undefined on the CPU, where nothing else is to choose from. */
  readonly device: Bytes | undefined;
  /** Address of a native function that does nothing, for memory that TensorFlow must not free. */
  readonly noop: bigint;
  readonly isGpu: boolean;

  /** @throws {TensorflowError} if the device is not there */
  constructor(options: ContextOptions) {
    this.c = openLibc();
    this.tf = openTensorflow(options.libraries);
    this.status = this.tf.TF_NewStatus();
    this.noop = this.c.dlsym(0n, cstring("getpid"));
    const { tf, status } = this;
    const contextOptions = tf.TFE_NewContextOptions();
    const config = configProto(options);
    tf.TFE_ContextOptionsSetConfig(contextOptions, config, BigInt(config.length), status);
    this.check("Configure TensorFlow");
    this.pointer = tf.TFE_NewContext(contextOptions, status);
    tf.TFE_DeleteContextOptions(contextOptions);
    this.check("Start TensorFlow");
    this.isGpu = options.device !== "cpu";
    if (options.device !== "cpu") {
      const suffix = `/device:GPU:${options.device.cuda}`;
      const name = this.devices().find((device) => device.endsWith(suffix));
      if (name === undefined) {
        throw new TensorflowError(
          `Cannot use cuda:${options.device.cuda}: TensorFlow sees ${this.devices().join(", ")}; ` +
            `run "${commandLine("doctor")}"`,
        );
      }
      this.device = cstring(name);
    }
  }

  /** Full names of the devices that TensorFlow sees. */
  devices(): string[] {
    const { tf, status } = this;
    const list = tf.TFE_ContextListDevices(this.pointer, status);
    this.check("List devices");
    const names: string[] = [];
    for (let i = 0; i < tf.TF_DeviceListCount(list); i++) {
      names.push(Deno.UnsafePointerView.getCString(tf.TF_DeviceListName(list, i, status)!));
    }
    tf.TF_DeleteDeviceList(list);
    return names;
  }

  /** @throws {TensorflowError} with TensorFlow's message, if the last call failed */
  check(what: string): void {
    if (this.tf.TF_GetCode(this.status) === 0) return;
    throw new TensorflowError(
      `${what}: ${Deno.UnsafePointerView.getCString(this.tf.TF_Message(this.status)!)}`,
    );
  }

  /** TensorFlow's version, such as "2.21.0". */
  get version(): string {
    return Deno.UnsafePointerView.getCString(this.tf.TF_Version()!);
  }
}

/** `tensorflow.ConfigProto`; the numbers are those of `tensorflow/core/protobuf/config.proto`. */
function configProto(options: ContextOptions): Bytes {
  const gpu = options.device !== "cpu";
  const deviceCount = bytesField(1, concat([bytesField(1, "CPU"), varintField(2, 1)]));
  const threads = gpu ? [] : [varintField(2, 1), varintField(5, 1)]; // intra_op and inter_op: a device is one core
  const gpuOptions = concat([
    ...(options.memoryFraction === undefined ? [] : [doubleField(1, options.memoryFraction)]),
    varintField(4, options.memoryGrowth ?? true),
  ]);
  return concat([deviceCount, ...threads, bytesField(6, gpuOptions), varintField(7, true)]);
}
